// CUDA's words for kernels on the CPU: a block's threads are threads, blocks
// run one after the other, so the source that a GPU gets can be tested and
// looked at by the sanitizers. Include it before the source, which then is a
// function that run_kernel() calls. Only what our kernels say is there.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#define KERNELS_ON_CPU
#define KERNEL inline
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define UNROLL(count)

namespace cuda_words {

struct Index {
  unsigned x = 0, y = 0;
};
// NOLINT below: names are CUDA's own.
inline thread_local Index threadIdx, blockIdx;  // NOLINT
inline Index blockDim, gridDim;  // written while no thread runs  // NOLINT
inline std::barrier<>* of_block = nullptr;

inline void __syncthreads() { of_block->arrive_and_wait(); }  // NOLINT
inline void __threadfence() {}                                // NOLINT
inline unsigned atomicAdd(unsigned* value, unsigned more) {   // NOLINT
  return std::atomic_ref(*value).fetch_add(more);
}
inline float __uint_as_float(unsigned bits) {  // NOLINT
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {  // NOLINT
  return std::bit_cast<unsigned>(value);
}
template <class T>
T load_across_blocks(const T* from) {
  return *from;
}
// IEEE 754 binary16, by its definition.
inline float half_to_float(unsigned short bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  const int whole = exponent == 0 ? fraction : fraction + 1024;
  return sign *
         std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 25);
}
// To the nearest, ties to even.
inline unsigned short float_to_half(float value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  if (std::isnan(value)) return static_cast<unsigned short>(sign | 0x7e00U);
  const float size = std::fabs(value);
  const int exponent = size < 0x1p-14F ? -14 : std::ilogb(size);
  if (exponent > 15) return static_cast<unsigned short>(sign | 0x7c00U);
  // A carry into the next exponent is right as it is.
  const auto steps =
      static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  const unsigned bits =
      size < 0x1p-14F ? steps
                      : (static_cast<unsigned>(exponent + 14) << 10) + steps;
  return static_cast<unsigned short>(sign | bits);
}

// kernel() in every thread of a grid; blocks along y in the order `blocks_y`.
template <class Kernel>
void run_kernel(Index grid, Index block, const std::vector<unsigned>& blocks_y,
                const Kernel& kernel) {
  gridDim = grid;
  blockDim = block;
  const size_t count = size_t{block.x} * block.y;
  std::barrier<> barrier(static_cast<ptrdiff_t>(count));
  of_block = &barrier;
  const auto thread = [&](unsigned id) {
    threadIdx = {id % block.x, id / block.x};
    for (unsigned x = 0; x < grid.x; ++x)
      for (const unsigned y : blocks_y) {
        blockIdx = {x, y};
        kernel();
        __syncthreads();  // what blocks share is theirs alone
      }
  };
  std::vector<std::jthread> threads;
  for (unsigned id = 0; id < count; ++id) threads.emplace_back(thread, id);
}

}  // namespace cuda_words
