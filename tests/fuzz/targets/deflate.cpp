// Deflate streams, sound and damaged, by every loop: the same outcome and the
// same bytes as zlib's.
//
//   input   kind, size of the output
//           | a stream, or what zlib is to make one of
#include "data/image/deflate.hpp"

#include <zlib.h>

#include <algorithm>

#include "fuzz/target.hpp"
#include "support/zlib_inflate.hpp"

namespace chexnet::fuzz {
namespace {

using Stream = std::vector<uint8_t>;

Stream packed(std::span<const uint8_t> bytes, int kind) {
  Stream out(bytes.size() * 2 + 1000);
  z_stream z{};
  constexpr int kStrategies = 5;
  deflateInit2(&z, kind % 10, Z_DEFLATED, -MAX_WBITS, 1 + kind % 9,
               kind % kStrategies);
  z.next_in = const_cast<Bytef*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  require(deflate(&z, Z_FINISH) == Z_STREAM_END, "zlib packs");
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

void compare(std::span<const uint8_t> stream, size_t size) {
  const ZlibInflated theirs = zlib_inflated(stream, size);
  for (const DeflateLoop loop : deflate_loops()) {
    Stream ours(size);  // no byte more, for the address sanitizer
    size_t used = 0;
    const InflateStatus status = inflate_deflate(stream, ours, loop, used);
    require(status == theirs.status, "zlib's outcome");
    if (status != InflateStatus::kWhole) continue;
    require(ours == theirs.bytes, "zlib's bytes");
    require(used == theirs.used, "zlib's end of the stream");
  }
}

void run(Bytes bytes) {
  Reader choices(bytes);
  const int kind = choices.byte();
  const auto size = static_cast<size_t>(choices.number(0, 65535));
  const std::string text = text_of(choices.rest());
  Stream stream(text.begin(), text.end());
  if (kind % 2 == 1) {
    // Repeats, so that there is something to refer to.
    while (!stream.empty() && stream.size() < size)
      stream.insert(stream.end(), stream.begin(),
                    stream.begin() + static_cast<ptrdiff_t>(std::min(
                                         stream.size(), size - stream.size())));
    stream = packed(stream, kind / 2);
  }
  compare(stream, size);
  // Its own size, and one less.
  const size_t whole = zlib_inflated(stream, size_t{1} << 18).bytes.size();
  compare(stream, whole);
  if (whole > 0) compare(stream, whole - 1);
}

std::vector<std::string> seeds() {
  Stream picture(20000);  // filtered pixels: small numbers around 0
  uint32_t state = 1;
  for (auto& byte : picture) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>((state >> 24) % 9 * ((state >> 16) % 3) - 8);
  }
  std::vector<std::string> all;
  for (const int kind : {0, 1, 2, 4, 6, 9, 13, 19}) {
    const Stream stream = packed(picture, kind);
    std::string seed = raw("\0\x4e\x20");
    seed.append(stream.begin(), stream.end());
    all.push_back(seed);
  }
  for (int kind = 1; kind < 30; kind += 2)
    all.push_back(
        std::string(1, static_cast<char>(kind)) +
        raw("\x40\x01 some words, and some of these words once more"));
  return all;
}

const Registered kTarget{{.name = "deflate", .run = run, .seeds = seeds}};

}  // namespace
}  // namespace chexnet::fuzz
