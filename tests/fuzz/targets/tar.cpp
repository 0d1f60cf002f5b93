// tar archives: the listing is the same whatever pieces the bytes come in, and
// every entry lies inside the archive with the checksum of its bytes.
#include "chexnet/data/storage/tar.hpp"

#include "chexnet/core/checksum.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/tar_parts.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  MemoryStore store(bytes);
  std::vector<Entry> entries;
  const bool whole = accepted<DataError>([&] {
    entries = tar_entries(store, {"x.tar", bytes.size()}, [](uint64_t) {});
  });
  std::vector<Entry> piecewise;
  TarStream stream(
      "x.tar", [](Entry&) {}, [&](Entry& e) { piecewise.push_back(e); });
  const bool again = accepted<DataError>([&] {
    for (size_t at = 0, piece = 1; at < bytes.size(); at += piece, ++piece) {
      piece = std::min(piece, bytes.size() - at);
      stream.feed(bytes.subspan(at, piece));
    }
    stream.finish();
  });
  require(whole == again, "pieces decide nothing");
  if (!whole) return;
  require(entries == piecewise, "pieces change no entry");
  for (const auto& e : entries) {
    require(is_possible_tar(e, bytes.size()), "an entry lies inside");
    const Bytes member = bytes.subspan(e.offset - e.skip, e.skip + e.length);
    require(crc32c(member) == e.crc32c,
            "an entry has the checksum of its headers and bytes");
  }
}

const Registered kTarget{{"tar", run, mend_tar, tar_seeds}};

}  // namespace
}  // namespace chexnet::fuzz
