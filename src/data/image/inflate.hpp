// Unpacks zlib streams (RFC 1950) in one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace chexnet {

enum class InflateStatus {
  kWhole,     // `into` is full and the Adler-32 is right
  kDamaged,   // no zlib stream, cut off, or its Adler-32 is wrong
  kTooShort,  // a whole stream of fewer bytes than `into` holds
  kTooLong,   // more bytes than `into` holds
};

// Fills `into` exactly. Thread-safe.
InflateStatus inflate_zlib(std::span<const std::byte> stream,
                           std::span<uint8_t> into);

// CRC-32 of PNG and gzip (polynomial 0x04C11DB7, reflected).
uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace chexnet
