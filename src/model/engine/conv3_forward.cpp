#include "conv3_forward.hpp"

#include <cassert>

#include "weight_packing.hpp"

// Rows of padded images are filled just before they are read. Output row y of
// a convolution of stride s reads input rows s*y - 1 .. s*y + 1, so by then
// `filled` rows 0 .. s*y + 1 are there. Direct convolutions take a band of rows
// at a time:
//
//     input   0 1 2 3 4 5 6 7        output y = 2, s = 1, reads 1 2 3:
//               [ y ]                0 .. 3 are filled by then
//
// The panel of a whole image stays in L2, and each input pixel is normalized
// once. Winograd reads the map itself, and normalizes what it reads: F(2x2,3x3)
// in training, because F(4x4,3x3) would round more, this in scoring, and in
// bf16, where maps are rounded a thousand times as much.
namespace chexnet {

template <class S>
Conv3Forward<S>::Conv3Forward(Build<S>& build, const Conv3Shape<S>& shape)
    : shape_(shape),
      kernels_(build.training && sizeof(S) > 2 ? build.kernels.winograd2
                                               : build.kernels.winograd4),
      packed_(build.keep_packed(packed_elements())) {
  for (int tap = 0; tap < 9; ++tap)
    add_block_offsets(offsets_, shape.in / kBlock / shape.pair,
                      shape.group * shape.padded.rows(), shape.padded, tap / 3,
                      tap % 3);
  build.need_workspace(space_in(nullptr, build.threads, build.training).bytes);
  if (!build.training)
    build.need_workspace_of_thread(space_in(nullptr, 1, false).bytes);
}

template <class S>
int64_t Conv3Forward<S>::packed_elements() const {
  const int64_t weights =
      static_cast<int64_t>(shape_.in) * shape_.out / shape_.pair;
  return weights * (shape_.winograd ? kernels_.frequencies() : 9);
}

template <class S>
auto Conv3Forward<S>::space_in(std::byte* region, int threads,
                               bool training) const -> Space {
  LinearAllocator allocator(region);
  Space s;
  const int parts = std::min(
      shape_.winograd ? shape_.tile_chunks(kernels_).parts : shape_.groups,
      kForwardParts);
  if (training) s.packed = allocator.take<A>(packed_elements());
  s.sums = PartSums::in(allocator, parts, shape_.out);
  if (shape_.winograd) {
    s.v = kernels_.frequencies() * kernels_.step(shape_.in);
    s.m = kernels_.frequencies() * kernels_.step(shape_.out);
  } else {
    s.panel = shape_.group * shape_.padded.rows() * shape_.in / shape_.pair +
              2 * Conv3Shape<S>::kSlack;
  }
  s.threads = allocator.take<A>(s.thread() * threads);
  s.bytes = allocator.used();
  return s;
}

template <class S>
void Conv3Forward<S>::fill_row(const Pass<S>& run, const FeatureMap<S>& in,
                               int image, int in_group, int y,
                               Panel<A> panel) const {
  const int64_t first =
      (static_cast<int64_t>(image) * shape_.input.height + y) *
      shape_.input.width;
  int64_t pixels[64];
  for (int x = 0; x < shape_.input.width; x += 64) {
    const int n = std::min(64, shape_.input.width - x);
    for (int i = 0; i < n; ++i) pixels[i] = first + x + i;
    run.kernels.normalize(in, pixels, n, panel,
                          shape_.padded.at(in_group, y, x));
  }
}

template <class S>
void Conv3Forward<S>::pack(const Pass<S>& run, A* packed) const {
  assert(!run.alone);
  const int64_t step = int64_t{9} * shape_.in;
  pack_in_pieces(
      run.thread_pool, shape_.out, shape_.in,
      [&](int output, int first, int last) {
        if (shape_.winograd) {
          kernels_.pack({shape_.weight, step, 9}, output, first, last, false,
                        static_cast<int64_t>(shape_.in) * shape_.out,
                        packed + static_cast<int64_t>(output) * shape_.in);
          return;
        }
        A* to = packed + output * step / shape_.pair;
        for (int tap = 0; tap < 9; ++tap,
                 to += static_cast<int64_t>(shape_.in) / shape_.pair * kOutputs)
          run.kernels.pack({shape_.weight + tap, step, 9}, output, first, last,
                           to);
      },
      kKernelsAtOnce);
}

template <class S>
PartSums Conv3Forward<S>::operator()(const Pass<S>& run,
                                     const FeatureMap<S>& in, S* out,
                                     int64_t pitch) const {
  assert(run.training && in.channels == shape_.in && pitch >= shape_.out);
  const PassTimer timer =
      shape_.timer(run, PassKind::kConv3Forward, shape_.input.images);
  const Space space = space_in(run.workspace, run.thread_pool.size(), true);
  pack(run, space.packed);
  if (shape_.winograd)
    winograd(run, space, in, out, pitch);
  else
    direct(run, space,
           [&](int image, int in_group, int y, Panel<A> panel) {
             fill_row(run, in, image, in_group, y, panel);
           },
           out, pitch, {0, shape_.input.images});
  return space.sums;
}

template <class S>
void Conv3Forward<S>::normalized(const Pass<S>& run, const S* in,
                                 int64_t in_pitch, S* out, int64_t pitch,
                                 ImageRange images) const {
  assert(!run.training && in_pitch >= shape_.in && pitch >= shape_.out);
  const PassTimer timer =
      shape_.timer(run, PassKind::kConv3Forward, images.count);
  Space space = space_in(run.workspace, run.threads(), false);
  space.packed = run.template kept_at<A>(packed_);
  if (run.pack) pack(run, space.packed);
  if (shape_.winograd)
    return winograd_normalized(run, space, {in, in_pitch, shape_.in}, out,
                               pitch, images);
  direct(
      run, space,
      [&](int image, int in_group, int y, Panel<A> panel) {
        run.kernels.copy(
            in, in_pitch, shape_.in,
            (static_cast<int64_t>(image) * shape_.input.height + y) *
                shape_.input.width,
            shape_.input.width, panel, shape_.padded.at(in_group, y, 0));
      },
      out, pitch, images);
}

template <class S>
void Conv3Forward<S>::chunk(const FeatureMap<S>& in, const Space& space,
                            int thread, int first, int tiles, S* out,
                            int64_t pitch, Moments moments) const {
  A* v = space.threads + thread * space.thread();
  A* m = v + space.v;
  kernels_.input(in, shape_.padded, first, tiles, v);
  kernels_.multiply(v, tiles, shape_.in, space.packed, shape_.out, m);
  kernels_.output(m, shape_.padded, first, tiles, shape_.out, out, pitch,
                  moments);
}

// Tiles are numbered through the images, in chunks that any thread may take: no
// chunk knows of another.
template <class S>
void Conv3Forward<S>::winograd(const Pass<S>& run, const Space& space,
                               const FeatureMap<S>& in, S* out,
                               int64_t pitch) const {
  const Cut tiles = shape_.tile_chunks(kernels_),
            chunks{tiles.parts, space.sums.parts};
  run.thread_pool.run(chunks.parts, [&](int part, int thread) {
    space.sums.clear(part);
    for (auto i = static_cast<int>(chunks.begin(part)); i < chunks.end(part);
         ++i) {
      const auto first = static_cast<int>(tiles.begin(i));
      chunk(in, space, thread, first, static_cast<int>(tiles.end(i)) - first,
            out, pitch, space.sums.moments(part));
    }
  });
}

template <class S>
void Conv3Forward<S>::winograd_normalized(const Pass<S>& run,
                                          const Space& space,
                                          const FeatureMap<S>& in, S* out,
                                          int64_t pitch,
                                          ImageRange images) const {
  const int64_t in_image = winograd_tiles(shape_.padded, kernels_.side),
                before = images.first * in_image,
                tiles = images.count * in_image;
  // As many for each thread, so that none waits for another.
  const int threads = run.threads();
  const int64_t of_round = int64_t{kernels_.most_tiles} * threads;
  const int64_t rounds = (tiles + of_round - 1) / of_round;
  const Cut cut{tiles,
                static_cast<int>(std::min<int64_t>(rounds * threads, tiles))};
  run.for_each_task(cut.parts, [&](int part, int thread) {
    chunk(in, space, thread, static_cast<int>(before + cut.begin(part)),
          static_cast<int>(cut.end(part) - cut.begin(part)), out, pitch, {});
  });
}

template <class S>
template <class Fill>
void Conv3Forward<S>::direct(const Pass<S>& run, const Space& space,
                             const Fill& fill_row, S* out, int64_t pitch,
                             ImageRange images) const {
  // In inference an image is a group (Conv3Shape).
  const int groups = run.training ? shape_.groups : images.count;
  const Cut cut{groups, std::min(groups, kForwardParts)};
  run.for_each_task(cut.parts, [&](int part, int thread) {
    const Panel<A> panel{
        space.threads + thread * space.thread() + Conv3Shape<S>::kSlack,
        shape_.group * shape_.padded.rows()};
    if (run.training) space.sums.clear(part);
    const Moments moments = run.training ? space.sums.moments(part) : Moments{};
    shape_.clear_border(panel, shape_.padded, shape_.in / kBlock / shape_.pair);
    const int band_rows = shape_.band_rows(), height = shape_.output.height;
    for (auto group = images.first + static_cast<int>(cut.begin(part));
         group < images.first + cut.end(part); ++group) {
      const int first = group * shape_.group,
                count = run.training ? shape_.group_images(group) : 1;
      int filled = 0;
      for (int y = 0; y < height; y += band_rows) {
        const int rows = std::min(band_rows, height - y);
        for (; filled < std::min(shape_.input.height,
                                 shape_.stride * (y + rows - 1) + 2);
             ++filled)
          for (int i = 0; i < count; ++i) fill_row(first + i, i, filled, panel);
        const int64_t corner = shape_.padded.at(0, shape_.stride * y - 1, -1);
        const int64_t to = (int64_t{first} * height + y) * shape_.output.width;
        run.kernels.conv3_band(
            panel.units + corner * kBlock,
            shape_.steps(shape_.padded, shape_.stride), offsets_.data(),
            static_cast<int>(offsets_.size()),
            {count, rows, shape_.output.width}, shape_.stride, space.packed,
            shape_.out, out + to * pitch, shape_.steps(shape_.output), pitch,
            moments);
      }
    }
  });
}

template class Conv3Forward<float>;
template class Conv3Forward<Bf16>;
template class Conv3Forward<double>;

}  // namespace chexnet
