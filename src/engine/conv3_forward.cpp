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
// once. Winograd works on chunks of 28 tiles (2 x 2 outputs) numbered along the
// group; a tile in tile row r reads input rows 2*r - 1 .. 2*r + 2.
namespace chexnet {

template <class S>
Conv3Forward<S>::Conv3Forward(Build<S>& build, const Conv3Shape<S>& shape)
    : shape_(shape), packed_(build.keep_packed(packed_elements())) {
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
  if (shape_.winograd4) return weights * kWinograd4Frequencies;
  return weights * (shape_.winograd ? 16 : 9);
}

template <class S>
auto Conv3Forward<S>::space_in(std::byte* region, int threads,
                               bool training) const -> Space {
  LinearAllocator allocator(region);
  Space s;
  const int parts = std::min(shape_.groups, kForwardParts);
  if (training) s.packed = allocator.take<A>(packed_elements());
  s.sums = {allocator.take<double>(PartSums::size(parts, shape_.out)), parts,
            shape_.out};
  if (shape_.winograd4) {
    s.zeros = allocator.take<S>(shape_.in);
    s.v = kWinograd4Frequencies * winograd4_step(shape_.in);
    s.m = kWinograd4Frequencies * winograd4_step(shape_.out);
    s.threads = allocator.take<A>(s.thread() * threads);
    s.bytes = allocator.used();
    return s;
  }
  s.panel = shape_.group * shape_.padded.rows() * shape_.in / shape_.pair +
            2 * Conv3Shape<S>::kSlack;
  s.v = shape_.winograd ? int64_t{16} * shape_.in * kWinogradTiles : 0;
  s.m = shape_.winograd ? int64_t{16} * shape_.out * kWinogradTiles : 0;
  s.threads = allocator.take<A>(s.thread() * threads);
  s.bytes = allocator.used();
  return s;
}

template <class S>
void Conv3Forward<S>::fill_row(const Run<S>& run, const FeatureMap<S>& in,
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
void Conv3Forward<S>::pack(const Run<S>& run, A* packed) const {
  assert(!run.alone);
  const int64_t step = int64_t{9} * shape_.in;
  pack_in_pieces(
      run.thread_pool, shape_.out, shape_.in,
      [&](int output, int first, int last) {
        if (shape_.winograd4) {
          pack_winograd4_block<A>(
              {shape_.weight, step, 9}, output, first, last,
              static_cast<int64_t>(shape_.in) * shape_.out,
              packed + static_cast<int64_t>(output) * shape_.in);
          return;
        }
        if (shape_.winograd) {
          pack_winograd_block<A>(
              {shape_.weight, step, 9}, output, first, last, false,
              static_cast<int64_t>(shape_.in) * shape_.out,
              packed + static_cast<int64_t>(output) * shape_.in);
          return;
        }
        A* to = packed + output * step / shape_.pair;
        for (int tap = 0; tap < 9; ++tap,
                 to += static_cast<int64_t>(shape_.in) / shape_.pair * kOutputs)
          pack_block<A>({shape_.weight + tap, step, 9}, output, first, last,
                        shape_.pair, to);
      });
}

template <class S>
PassTimer Conv3Forward<S>::timer(const Run<S>& run, int images) const {
  const auto values = [&](const MapShape& map, int channels) {
    return static_cast<double>(map.height) * map.width * images * channels;
  };
  const double inputs = values(shape_.input, shape_.in),
               outputs = values(shape_.output, shape_.out);
  return {run.layer_times, PassKind::kConv3Forward, 18.0 * outputs * shape_.in,
          (inputs + outputs) * sizeof(S)};
}

template <class S>
PartSums Conv3Forward<S>::operator()(const Run<S>& run, const FeatureMap<S>& in,
                                     S* out, int64_t pitch) const {
  assert(run.training && in.channels == shape_.in && pitch >= shape_.out);
  const PassTimer timer = this->timer(run, shape_.input.images);
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
void Conv3Forward<S>::normalized(const Run<S>& run, const S* in,
                                 int64_t in_pitch, S* out, int64_t pitch,
                                 ImageRange images) const {
  assert(!run.training && in_pitch >= shape_.in && pitch >= shape_.out);
  const PassTimer timer = this->timer(run, images.count);
  Space space = space_in(run.workspace, run.threads(), false);
  space.packed = run.template kept_at<A>(packed_);
  if (run.pack) pack(run, space.packed);
  if (shape_.winograd4)
    return winograd4(run, space, in, in_pitch, out, pitch, images);
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

// Tiles are numbered through the images, in chunks that any thread may take: no
// chunk knows of another.
template <class S>
void Conv3Forward<S>::winograd4(const Run<S>& run, const Space& space,
                                const S* in, int64_t in_pitch, S* out,
                                int64_t pitch, ImageRange images) const {
  const int64_t in_image = int64_t{(shape_.input.width + 3) / 4} *
                           ((shape_.input.height + 3) / 4),
                before = images.first * in_image,
                tiles = images.count * in_image;
  // As many for each thread, so that none waits for another.
  const int threads = run.threads();
  const int64_t of_round = int64_t{kWinograd4Tiles} * threads;
  const int64_t rounds = (tiles + of_round - 1) / of_round;
  const int64_t chunks = rounds * threads;
  const Cut cut{tiles, static_cast<int>(std::min<int64_t>(chunks, tiles))};
  std::fill_n(space.zeros, shape_.in, S(0));
  run.for_each_task(cut.parts, [&](int chunk, int thread) {
    A* v = space.threads + thread * space.thread();
    A* m = v + space.v;
    const auto first = static_cast<int>(before + cut.begin(chunk)),
               n = static_cast<int>(cut.end(chunk) - cut.begin(chunk));
    run.kernels.winograd4_input(in, in_pitch, shape_.padded, space.zeros, first,
                                n, shape_.in, v);
    run.kernels.winograd4_multiply(v, n, shape_.in, space.packed, shape_.out,
                                   m);
    run.kernels.winograd4_output(m, shape_.padded, first, n, shape_.out, out,
                                 pitch);
  });
}

template <class S>
template <class Fill>
void Conv3Forward<S>::direct(const Run<S>& run, const Space& space,
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

template <class S>
void Conv3Forward<S>::winograd(const Run<S>& run, const Space& space,
                               const FeatureMap<S>& in, S* out,
                               int64_t pitch) const {
  const Cut cut{shape_.groups, space.sums.parts};
  const int across = (shape_.input.width + 1) / 2;
  run.thread_pool.run(cut.parts, [&](int part, int thread) {
    A* memory = space.threads + thread * space.thread();
    const Panel<A> panel{memory + Conv3Shape<S>::kSlack,
                         shape_.group * shape_.padded.rows()};
    A *v = memory + space.panel, *m = v + space.v;
    if (run.training) space.sums.clear(part);
    const Moments moments = run.training ? space.sums.moments(part) : Moments{};
    shape_.clear_border(panel, shape_.padded, shape_.in / kBlock);
    for (auto group = static_cast<int>(cut.begin(part)); group < cut.end(part);
         ++group) {
      const int tiles = shape_.tiles * shape_.group_images(group);
      const int64_t first = static_cast<int64_t>(group) * shape_.group *
                            shape_.input.height * shape_.input.width;
      int filled = 0;  // rows of the group
      for (int t = 0; t < tiles; t += kWinogradTiles) {
        const int n = std::min(kWinogradTiles, tiles - t), last = t + n - 1;
        const int needed = last / shape_.tiles * shape_.input.height +
                           std::min(shape_.input.height,
                                    2 * (last % shape_.tiles / across) + 3);
        for (; filled < needed; ++filled)
          fill_row(run, in, group * shape_.group + filled / shape_.input.height,
                   filled / shape_.input.height, filled % shape_.input.height,
                   panel);
        run.kernels.winograd_input(panel, shape_.padded, t, n, shape_.in, v);
        run.kernels.winograd_multiply(v, n, shape_.in, space.packed, 0,
                                      shape_.out, shape_.out, m);
        run.kernels.winograd_output(m, shape_.padded, t, n, shape_.out,
                                    out + first * pitch, pitch, moments);
      }
    }
  });
}

template class Conv3Forward<float>;
template class Conv3Forward<Bf16>;
template class Conv3Forward<double>;

}  // namespace chexnet
