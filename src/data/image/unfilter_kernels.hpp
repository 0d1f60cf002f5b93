// Plain functions, each with the kernel of one instruction set; see
// UnfilterKernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chexnet {

void unfilter_sse41(const uint8_t*, uint8_t*, size_t, int, int, const uint8_t*);
void unfilter_avx2(const uint8_t*, uint8_t*, size_t, int, int, const uint8_t*);
void unfilter_avx512bw(const uint8_t*, uint8_t*, size_t, int, int,
                       const uint8_t*);
void unfilter_avx512vbmi(const uint8_t*, uint8_t*, size_t, int, int,
                         const uint8_t*);
void unfilter_neon(const uint8_t*, uint8_t*, size_t, int, int, const uint8_t*);

}  // namespace chexnet
