// fp32 to and from the two 16-bit formats, round to nearest even, NaN kept. For
// gradients on the wire.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace chexnet {

inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16);
}
inline float from_bf16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}
// Two in the bits of a float, the first in the low half.
inline float bf16_pair(float first, float second) {
  return std::bit_cast<float>(to_bf16(first) |
                              static_cast<uint32_t>(to_bf16(second)) << 16);
}

// IEEE binary16 by the magic-number method (exact for subnormals: the addition
// aligns and rounds the mantissa).
inline uint16_t to_fp16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x47800000u)
    return static_cast<uint16_t>(sign | 0x7C00u);  // >= 65536
  if (magnitude < 0x38800000u) {  // below the smallest normal, 2^-14
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<uint16_t>(
      sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}
inline float from_fp16(uint16_t value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000u) << 16;
  const uint32_t exponent = (value >> 10) & 31;
  const uint32_t mantissa = value & 0x3FFu;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (mantissa << 13));
}

}  // namespace chexnet
