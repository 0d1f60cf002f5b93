// A line of pixels from right to left.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chexnet {

// into[x] = line[width - 1 - x]; they must not overlap. std::reverse_copy moves one byte at a time,
// which would cost more than everything else about a packed image.
void copy_reversed(const std::uint8_t* line, std::size_t width, std::uint8_t* into);

}  // namespace chexnet
