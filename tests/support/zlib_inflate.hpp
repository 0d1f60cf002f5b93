// What zlib makes of a raw deflate stream, in the words of inflate.hpp.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <vector>

#include "data/image/inflate.hpp"

namespace chexnet {

struct ZlibInflated {
  InflateStatus status;
  std::vector<uint8_t> bytes;  // as far as it came, one too many at most
  size_t used;                 // of the deflate stream
};

// One byte more than `size` may come out: that is how a longer stream shows.
inline ZlibInflated zlib_inflated(std::span<const uint8_t> stream,
                                  size_t size) {
  ZlibInflated result{InflateStatus::kDamaged, std::vector<uint8_t>(size + 1),
                      0};
  z_stream z{};
  z.next_in = const_cast<Bytef*>(stream.data());
  z.avail_in = static_cast<uInt>(stream.size());
  z.next_out = result.bytes.data();
  z.avail_out = static_cast<uInt>(size + 1);
  inflateInit2(&z, -MAX_WBITS);
  const int rc = inflate(&z, Z_SYNC_FLUSH);
  if (z.total_out > size)
    result.status = InflateStatus::kTooLong;
  else if (rc == Z_STREAM_END)
    result.status =
        z.total_out == size ? InflateStatus::kWhole : InflateStatus::kTooShort;
  result.bytes.resize(z.total_out);
  result.used = z.total_in;
  inflateEnd(&z);
  return result;
}

}  // namespace chexnet
