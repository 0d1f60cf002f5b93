#include "inflate.hpp"

#include <libdeflate.h>

#include "deflate.hpp"

namespace chexnet {

uint32_t crc32_of(std::span<const std::byte> bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

// A header of two bytes, deflate, Adler-32.
InflateStatus inflate_zlib(std::span<const std::byte> stream,
                           std::span<uint8_t> into) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(stream.data()),
                        stream.size());
  // Deflate, a window of at most 32 KiB, no preset dictionary.
  if (bytes.size() < 6 || (bytes[0] & 15) != 8 || bytes[0] >> 4 > 7 ||
      (bytes[1] & 32) != 0 || (bytes[0] * 256 + bytes[1]) % 31 != 0)
    return InflateStatus::kDamaged;
  size_t used = 0;
  const InflateStatus status =
      inflate_deflate(bytes.subspan(2), into, deflate_loops().front(), used);
  if (status != InflateStatus::kWhole) return status;
  const auto sum = bytes.subspan(2 + used);
  if (sum.size() < 4) return InflateStatus::kDamaged;
  const uint32_t wanted =
      static_cast<uint32_t>(sum[0]) << 24 | sum[1] << 16 | sum[2] << 8 | sum[3];
  return libdeflate_adler32(1, into.data(), into.size()) == wanted
             ? InflateStatus::kWhole
             : InflateStatus::kDamaged;
}

}  // namespace chexnet
