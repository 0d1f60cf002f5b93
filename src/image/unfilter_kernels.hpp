// The kernels of one instruction set each, behind plain functions; see
// UnfilterKernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chexnet {

void unfilter_sse41(const std::uint8_t*, std::uint8_t*, std::size_t, int, int,
                    const std::uint8_t*);
void unfilter_avx2(const std::uint8_t*, std::uint8_t*, std::size_t, int, int,
                   const std::uint8_t*);
void unfilter_avx512bw(const std::uint8_t*, std::uint8_t*, std::size_t, int,
                       int, const std::uint8_t*);
void unfilter_avx512vbmi(const std::uint8_t*, std::uint8_t*, std::size_t, int,
                         int, const std::uint8_t*);

}  // namespace chexnet
