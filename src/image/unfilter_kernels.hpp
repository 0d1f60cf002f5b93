// The kernels of one instruction set each, behind plain pointers. `zeros`: width + kUnfilterRoom
// zero bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chexnet {

using UnfilterRows = void (*)(const std::uint8_t* lines, std::uint8_t* pixels, std::size_t stride,
                              int width, int height, const std::uint8_t* zeros);
void unfilter_sse41(const std::uint8_t*, std::uint8_t*, std::size_t, int, int, const std::uint8_t*);
void unfilter_avx2(const std::uint8_t*, std::uint8_t*, std::size_t, int, int, const std::uint8_t*);
void unfilter_avx512bw(const std::uint8_t*, std::uint8_t*, std::size_t, int, int,
                       const std::uint8_t*);
void unfilter_avx512vbmi(const std::uint8_t*, std::uint8_t*, std::size_t, int, int,
                         const std::uint8_t*);

}  // namespace chexnet
