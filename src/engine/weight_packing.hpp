// Weights between torchvision's layout and the kernels'.
#pragma once

#include <algorithm>
#include <cstdint>

#include "chexnet/core/thread_pool.hpp"

namespace chexnet {

// A matrix of weights [outputs][inputs] inside a tensor.
template <class A>
struct WeightMatrix {
  const A* values = nullptr;
  int64_t output_step = 0, input_step = 0;
};

// One block of 32 outputs, inputs [first, last): [input / pair][32] units at
// `to`, which is the place of input 0.
template <class A>
void pack_block(const WeightMatrix<A>& from, int first_output, int first,
                int last, int pair, A* to);

// The form U = G g Gt of the same for all frequencies of Winograd with tiles of
// `side` x `side` outputs, 2 or 4: to[f * frequency_step + input * 32 +
// output]. `from` points to the kernel's first of 9 taps; `flipped` turns each
// kernel by 180 degrees.
template <class A>
void pack_winograd_block(int side, const WeightMatrix<A>& from,
                         int first_output, int first, int last, bool flipped,
                         int64_t frequency_step, A* to);

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

// dg = Gt dU G of 16 kernels side by side, for a side of 4: u[6 x 6] ->
// g[3 x 3].
template <class A>
void winograd_kernel_gradients(const A (&u)[36][16], A (&g)[9][16]);

}  // namespace chexnet
