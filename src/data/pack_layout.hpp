// The layout of a pack, for its reader and writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "chexnet/data/pack.hpp"

namespace chexnet {

inline constexpr size_t kPackPage = 4096, kPackHead = 16;  // bytes
inline constexpr std::string_view kPackMagic = "CHXPACK1",
                                  kPartialPackMagic = "CHXPART1";

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Where everything is; a function of the shape alone.
struct PackLayout {
  uint64_t names_bytes, table_offset, data_offset, stride, size;
};
inline PackLayout pack_layout(const PackShape& shape, size_t names_bytes) {
  const auto up = [](uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
  };
  PackLayout l{};
  const auto side = static_cast<uint64_t>(shape.side);
  l.names_bytes = names_bytes;
  l.table_offset = up(kPackPage + names_bytes, 64);
  l.data_offset =
      up(l.table_offset + shape.names.size() * sizeof(PackEntry), kPackPage);
  l.stride = side * side;
  l.size = l.data_offset + l.stride * shape.names.size();
  return l;
}

}  // namespace chexnet
