// Hostile .tar.gz files: what the indexer lists can be read again from the
// middle, with the checksum that it noted.
#include <zlib.h>

#include "chexnet/core/checksum.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/tar_parts.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  MemoryStore store(bytes);
  std::vector<Entry> entries;
  if (!accepted<DataError>([&] {
        entries =
            tar_gz_entries(store, {"x.tar.gz", bytes.size()}, [](uint64_t) {});
      }))
    return;
  std::vector<std::byte> content;
  for (const auto& e : entries) {
    require(is_possible(e, ContainerKind::kTarGz, bytes.size()),
            "the indexer writes entries that its reader takes");
    inflate_member(bytes.subspan(e.offset, e.stored), e, "x.tar.gz", content);
    require(content.size() == e.length && crc32c(content) == e.crc32c,
            "a member read from the middle is the member");
  }
}

std::string gzipped(const std::string& text, int level) {
  z_stream z{};
  deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

// CRC-32 and length after the deflate stream of the first gzip member, where it
// has one with a plain header.
void mend(std::vector<std::byte>& bytes) {
  constexpr size_t kHead = 10;
  if (bytes.size() < kHead || bytes[3] != std::byte{0}) return;
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) return;
  static std::vector<std::byte> out(1 << 20);  // taken once, not per change
  z.next_in = reinterpret_cast<Bytef*>(bytes.data() + kHead);
  z.avail_in = static_cast<uInt>(bytes.size() - kHead);
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int rc = inflate(&z, Z_FINISH);
  const size_t used = kHead + z.total_in, made = z.total_out;
  inflateEnd(&z);
  if (rc != Z_STREAM_END || bytes.size() < used + 8) return;
  const auto crc = static_cast<uint32_t>(crc32(
      0, reinterpret_cast<const Bytef*>(out.data()), static_cast<uInt>(made)));
  const auto length = static_cast<uint32_t>(made);
  std::memcpy(&bytes[used], &crc, 4);
  std::memcpy(&bytes[used + 4], &length, 4);
}

std::vector<std::string> seeds() {
  std::vector<std::string> packed;
  for (const auto& tar : tar_seeds())
    for (const int level : {0, 1, 9}) packed.push_back(gzipped(tar, level));
  packed.push_back(gzipped(tar_seeds()[0].substr(0, 700), 6) +
                   gzipped(tar_seeds()[0].substr(700), 6));
  return packed;
}

const Registered kTarget{{"tar_gz", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
