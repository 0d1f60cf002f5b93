// Inflating a .gz file from somewhere in its middle.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chexnet/data/storage/tar.hpp"

namespace chexnet {

using DeflateWindow = std::array<uint8_t, kDeflateWindow>;
inline constexpr int kRawDeflate = -15,
                     kGzip = 31;  // window bits, as zlib counts them

// A point where inflating can start: a block boundary.
struct GzPoint {
  uint64_t in = 0, out = 0;  // bytes of the .gz file and of what it holds
  int bit = 0;  // bits of the byte before `in` that are still to come
  DeflateWindow window{};
  uint64_t first_byte() const { return in - (bit > 0 ? 1 : 0); }
};

// Follows the gzip stream over the ends of its members. One thread.
class GzMiddle {
 public:
  GzMiddle() { inflateInit2(&z_, kRawDeflate); }
  ~GzMiddle() { inflateEnd(&z_); }
  GzMiddle(const GzMiddle&) = delete;
  GzMiddle& operator=(const GzMiddle&) = delete;

  void start(int bit, const DeflateWindow& window);
  // Inflates until `in` or `out` is used up; both move on. False when the data
  // is damaged.
  bool run(std::span<const std::byte>& in, std::span<std::byte>& out);

 private:
  void pass_over_trailer(std::span<const std::byte>& in);

  z_stream z_{};
  int bit_ = 0;  // > 0: the first byte is still to come
  // zlib reads head and trailer; the member entered in its middle has none.
  bool gzip_ = false;
  size_t trailer_ = 0;  // bytes left of that one's trailer
};

// Sets the window of each of `members`, which start from `point`, are one after
// the other and have skip, length and stored.
void find_windows(Store& store, const StoredFile& file, const GzPoint& point,
                  std::span<Entry> members);

[[noreturn]] void gzip_is_damaged(const std::string& path, uint64_t at,
                                  const char* what);

}  // namespace chexnet
