// Archives that zlib compressed in every way it can: the indexer must take
// them, and each member read from the middle must be the member.
#include <zlib.h>

#include <array>

#include "chexnet/core/checksum.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/tar_parts.hpp"

namespace chexnet::fuzz {
namespace {

constexpr std::array kFlushes = {Z_NO_FLUSH,   Z_NO_FLUSH,   Z_PARTIAL_FLUSH,
                                 Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK,
                                 Z_FINISH};

// Compresses `tar` in pieces; each is followed by a flush that the input
// chooses, and Z_FINISH begins another gzip member.
std::vector<std::byte> compressed(const std::string& tar, Reader& choices) {
  std::vector<std::byte> file;
  z_stream z{};
  const int level = choices.byte() % 10, strategy = choices.byte() % 5;
  const int window = 9 + choices.byte() % 7;
  require(deflateInit2(&z, level, Z_DEFLATED, 16 + window,
                       1 + choices.byte() % 9, strategy) == Z_OK,
          "zlib starts");
  std::vector<std::byte> out(2 * tar.size() + 4096);
  for (size_t at = 0; at < tar.size();) {
    const auto most = static_cast<int>(std::min<size_t>(tar.size() - at, 9000));
    const auto count = static_cast<size_t>(choices.number(1, most));
    int flush = kFlushes[choices.byte() % kFlushes.size()];
    if (at + count == tar.size()) flush = Z_FINISH;
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(&tar[at]));
    z.avail_in = static_cast<uInt>(count);
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    deflate(&z, flush);
    require(z.avail_in == 0, "zlib takes all of a piece");
    file.insert(file.end(), out.data(), out.data() + out.size() - z.avail_out);
    if (flush == Z_FINISH) deflateReset(&z);
    at += count;
  }
  deflateEnd(&z);
  return file;
}

// Members whose contents repeat each other, so that there is much to refer to.
std::string made_tar(Reader& choices) {
  std::string tar, before;
  for (int members = 1 + choices.byte() % 6; members > 0; --members) {
    std::string content;
    for (int parts = choices.byte() % 5; parts > 0; --parts) {
      const auto length = static_cast<size_t>(choices.side(3000));
      const auto kind = choices.byte();
      if (kind % 3 == 0 && !before.empty())
        content += before.substr(kind % before.size(), length);
      else if (kind % 3 == 1)
        content.append(length, static_cast<char>(kind));
      else
        for (size_t i = 0; i < length; ++i)
          content += static_cast<char>((i * i + kind) * 0x9E3779B1u >> 24);
    }
    tar += tar_member("m" + std::to_string(members), '0', content);
    before += content;
  }
  return tar + std::string(2 * kTarBlock, '\0');
}

void run(Bytes bytes) {
  Reader choices(bytes);
  const std::string tar = made_tar(choices);
  const auto file = compressed(tar, choices);
  MemoryStore store(file), plain(std::as_bytes(std::span(tar)));
  const auto wanted = tar_entries(plain, {"x.tar", tar.size()}, [](auto) {});
  const auto got =
      tar_gz_entries(store, {"x.tar.gz", file.size()}, [](auto) {});
  require(wanted.size() == got.size(), "every member is listed");
  std::vector<std::byte> content;
  for (size_t i = 0; i < got.size(); ++i) {
    const Entry& e = got[i];
    require(is_possible(e, ContainerKind::kTarGz, file.size()),
            "the indexer writes entries that its reader takes");
    inflate_member(std::span(file).subspan(e.offset, e.stored), e, "x.tar.gz",
                   content);
    require(text_of(content) == tar.substr(wanted[i].offset, e.length),
            "a member read from the middle is the member");
    require(e.crc32c == crc32c(content), "checksums are of the content");
  }
}

std::vector<std::string> seeds() {
  return {std::string(300, '\x55'),
          "\x05\x03\x10\x20\x02\x07" + std::string(200, '\x21')};
}

const Registered kTarget{{"gzip_windows", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
