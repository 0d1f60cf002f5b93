// Bringing weights into the kernels' form.
#pragma once

#include <algorithm>

#include "chexnet/core/thread_pool.hpp"

namespace chexnet {

// Calls pack(first output, first input, last input) for pieces of a matrix,
// `at_once` inputs each, by all threads.
template <class Pack>
void pack_in_pieces(ThreadPool& thread_pool, int outputs, int inputs,
                    const Pack& pack, int at_once = 64) {
  const int across = (inputs + at_once - 1) / at_once;
  thread_pool.run(outputs / 32 * across, [&](int piece, int) {
    const int first = piece % across * at_once;
    pack(piece / across * 32, first, std::min(inputs, first + at_once));
  });
}
// Of 3x3 kernels: all taps of a piece stay in L1.
constexpr int kKernelsAtOnce = 16;

}  // namespace chexnet
