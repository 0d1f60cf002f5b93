#include <algorithm>
#include <cassert>

#include "conv3_backward.hpp"
#include "weight_packing.hpp"

// The gradient dy of the outputs is brought into two forms, one for each of its
// products:
//
//     dy --> V -- U of w turned by 180 degrees --> M --> dx, to memory
//        \-> Q -- V of y ------------------------------> += sums of dw's form
//
// A task goes by chunks of tiles, which know nothing of each other, and takes a
// chunk's input channels in slices. It reads the maps themselves: the input is
// normalized once for dx, and once more as y, into another form.
namespace chexnet {
namespace {

// Input channels of a slice: U, M and sums of the weights' gradient of so many
// stay in L2.
constexpr int kSlice = 64;
// Whether such a slice's sums are far from staying there, so that each chunk
// reads and writes them from beyond.
template <class A>
bool leaves_caches(int outputs) {
  return int64_t{36} * kSlice * outputs * static_cast<int64_t>(sizeof(A)) >
         int64_t{2} << 20;
}

template <class S>
class WinogradBackward final : public Conv3Backward<S> {
 public:
  using A = Accumulator<S>;
  WinogradBackward(Build<S>& build, const Conv3Shape<S>& shape)
      : shape_(shape),
        kernels_(leaves_caches<A>(shape.out) ? build.kernels.winograd4_wide
                                             : build.kernels.winograd4),
        tiles_(shape.tile_chunks(kernels_)),
        cut_(conv3_cut(shape, tiles_.parts, kernels_.frequencies(),
                       build.threads)),
        v_(kernels_.frequencies() * kernels_.step(shape.out)),
        m_(kernels_.frequencies() *
           kernels_.step(std::min(kSlice, cut_.widest()))) {
    build.need_workspace(space(nullptr).bytes);
  }

  PartSums compute(const Pass<S>& run, const GradientMap<S>& dy,
                   const GradientEpilogue<S>& epilogue) const override {
    const BackwardSpace<S> space = this->space(run.workspace);
    pack_in_pieces(
        run.thread_pool, shape_.in, shape_.out,
        [&](int output, int first, int last) {
          kernels_.pack({shape_.weight, 9, int64_t{9} * shape_.in}, output,
                        first, last, true, int64_t{shape_.in} * shape_.out,
                        space.packed + int64_t{output} * shape_.out);
        },
        kKernelsAtOnce);
    run.thread_pool.run(cut_.tasks(), [&](int task, int thread) {
      const int part = cut_.part(task);
      const GradientEpilogue<S> own =
          epilogue_of_task(epilogue, cut_, space.sums, task);
      for (auto i = static_cast<int>(cut_.items.begin(part));
           i < cut_.items.end(part); ++i)
        chunk(dy, own, space, i, part, thread);
    });
    write_gradient(run, space);
    return space.sums;
  }

 private:
  BackwardSpace<S> space(std::byte* region) const {
    return {region, cut_,
            int64_t{kernels_.frequencies()} * shape_.in * shape_.out, 1,
            2 * v_ + m_};
  }

  void chunk(const GradientMap<S>& dy, const GradientEpilogue<S>& epilogue,
             const BackwardSpace<S>& space, int number, int part,
             int thread) const {
    A* v = space.memory_of(thread);
    A *m = v + v_, *q = m + m_;
    const auto first = static_cast<int>(tiles_.begin(number)),
               n = static_cast<int>(tiles_.end(number)) - first;
    kernels_.gradient(dy, shape_.padded, first, n, v, q);
    GradientEpilogue<S> slice = epilogue;
    for (; slice.first < epilogue.last; slice.first = slice.last) {
      slice.last = std::min(slice.first + kSlice, epilogue.last);
      kernels_.multiply_back(v, shape_.padded, first, n, shape_.out,
                             space.packed, shape_.in, slice, m);
      // Which the next chunk reads first.
      NextRows next_d, next_x;
      if (slice.last == epilogue.last) {
        next_d = rows_of_chunk(dy.d, dy.d_pitch, number + 1);
        next_x = rows_of_chunk(dy.x, dy.x_pitch, number + 1);
      }
      // The slice's map once more, where M was.
      const FeatureMap<S>& map = slice.map;
      const FeatureMap<S> in{map.x + slice.first, map.pitch,
                             slice.last - slice.first, map.scale + slice.first,
                             map.shift + slice.first};
      kernels_.input(in, shape_.padded, first, n, m);
      kernels_.weight_gradient(q, shape_.out, m, in.channels, n,
                               space.weights_of(part) + slice.first, shape_.in,
                               number != cut_.items.begin(part), next_d,
                               next_x);
    }
  }

  // The pixels of dy that a chunk reads, if there is such a chunk. Those above
  // its tiles were read for the chunk before it.
  NextRows rows_of_chunk(const S* map, int64_t pitch, int number) const {
    if (number >= tiles_.parts) return {};
    const auto pixel = [&](int chunk) {
      return winograd_tile(shape_.padded, kernels_.side,
                           static_cast<int>(tiles_.begin(chunk)))
          .pixel;
    };
    const int64_t first = pixel(number);
    constexpr auto kBytes = static_cast<int64_t>(sizeof(S));
    return {map + first * pitch, pitch * kBytes, shape_.out * kBytes,
            static_cast<int>(pixel(number + 1) - first)};
  }

  // Sums of the parts, [frequency][output][input], back in torchvision's
  // layout, in the order in which they lie in memory.
  void write_gradient(const Pass<S>& run, const BackwardSpace<S>& space) const {
    int64_t offsets[36];
    for (int f = 0; f < kernels_.frequencies(); ++f)
      offsets[f] = int64_t{f} * shape_.out * shape_.in;
    run.thread_pool.run(shape_.out, [&](int o, int) {
      for (int c = 0; c < shape_.in; c += kBlock) {
        const int64_t at = int64_t{o} * shape_.in + c;
        kernels_.kernel_gradients(
            space.weights + at, offsets, space.weight_size, space.sums.parts,
            !run.micro_batch.first(), shape_.gradient + 9 * at);
      }
    });
  }

  Conv3Shape<S> shape_;
  WinogradKernels<S> kernels_;
  Cut tiles_;        // into chunks
  BackwardCut cut_;  // of the chunks
  int64_t v_, m_;    // elements of V, as of Q, and of M
};

}  // namespace

template <class S>
std::unique_ptr<Conv3Backward<S>> winograd_backward(
    Build<S>& build, const Conv3Shape<S>& shape) {
  return std::make_unique<WinogradBackward<S>>(build, shape);
}

template std::unique_ptr<Conv3Backward<float>> winograd_backward(
    Build<float>&, const Conv3Shape<float>&);
template std::unique_ptr<Conv3Backward<Bf16>> winograd_backward(
    Build<Bf16>&, const Conv3Shape<Bf16>&);
template std::unique_ptr<Conv3Backward<double>> winograd_backward(
    Build<double>&, const Conv3Shape<double>&);

}  // namespace chexnet
