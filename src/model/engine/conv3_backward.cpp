#include "conv3_backward.hpp"

#include <algorithm>
#include <cassert>

#include "weight_packing.hpp"

// Two things are made of the gradient dy of the outputs while both are in L2:
//
//     dy --- w turned by 180 degrees ---> dx, to memory
//        \                                |
//         \                               v
//          +------------------------------> dw += dy x y
//
// Direct convolutions go image by image. dy is a padded panel. dx leaves
// through the epilogue, which also gives the normalized input y back; that goes
// into a panel. Invariant of `summed`: dw holds the products of all output rows
// below it, and all input rows those need are in y. The last rows of an image
// wait for its last input row.
//
// Winograd goes by chunks of tiles, which know nothing of each other, and reads
// the maps themselves: y is normalized once more for its own form.
//
// With stride 2 an input pixel is read by 1, 2 or 4 taps, by the parity of its
// row and column:
//
//     parity  (0,0): tap 4         (0,1): taps 3 5
//             (1,0): taps 1 7      (1,1): taps 0 2 6 8
//
// so there are four classes of input pixels, each with its own list of taps
// (`classes_`).
namespace chexnet {
namespace {

// Input channels that Winograd takes at a time: U, M and sums of the weights'
// gradient of so many stay in L2.
constexpr int kSlice = 64;
// Whether such a slice's sums are far from staying there, so that each chunk
// reads and writes them from beyond.
template <class A>
bool leaves_caches(int outputs) {
  return int64_t{36} * kSlice * outputs * static_cast<int64_t>(sizeof(A)) >
         int64_t{2} << 20;
}

}  // namespace

template <class S>
Conv3Backward<S>::Conv3Backward(Build<S>& build, const Conv3Shape<S>& shape)
    : shape_(shape),
      kernels_(leaves_caches<A>(shape.out) ? build.kernels.winograd4_wide
                                           : build.kernels.winograd4) {
  // Output o reads input stride * o + tap - 1, so input i is read by output (i
  // + 1 - tap) / stride.
  const int stride = shape.stride;
  for (int parity = 0; parity < stride * stride; ++parity) {
    const int y = parity / stride, x = parity % stride;
    Class c{{}, static_cast<int>(taps_.size())};
    for (int tap = 0; tap < 9; ++tap) {
      const int oy = y + 1 - tap / 3, ox = x + 1 - tap % 3;
      if (oy % stride != 0 || ox % stride != 0) continue;
      add_block_offsets(c.offsets, shape.out / kBlock / shape.pair,
                        shape.group * shape.padded_output.rows(),
                        shape.padded_output, oy / stride, ox / stride);
      taps_.push_back(tap);
    }
    classes_.push_back(std::move(c));
  }
  if (build.training)
    build.need_workspace(space_in(nullptr, build.threads).bytes);
}

// As many parts as have sums of 4 MB together.
template <class S>
BackwardCut Conv3Backward<S>::cut_for(int threads) const {
  constexpr int64_t kMostBytes = int64_t{4} << 20;
  const int64_t sums = int64_t{taps()} * shape_.in * shape_.out;
  const int64_t fit = kMostBytes / (sums * static_cast<int64_t>(sizeof(A)));
  return {shape_.winograd ? shape_.tile_chunks(kernels_).parts : shape_.groups,
          shape_.in, threads,
          static_cast<int>(std::clamp<int64_t>(fit, 1, BackwardCut::kParts))};
}

template <class S>
auto Conv3Backward<S>::space_in(std::byte* region, int threads) const -> Space {
  const BackwardCut cut = cut_for(threads);
  LinearAllocator allocator(region);
  Space s;
  s.weight_size = int64_t{taps()} * shape_.in * shape_.out;
  s.packed = allocator.take<A>(s.weight_size / shape_.pair);
  s.weights = allocator.take<A>(s.weight_size * cut.items.parts);
  s.sums = PartSums::in(allocator, cut.items.parts, shape_.in);
  if (shape_.winograd) {
    s.v = s.q = kernels_.frequencies() * kernels_.step(shape_.out);
    s.m =
        kernels_.frequencies() * kernels_.step(std::min(kSlice, cut.widest()));
  } else {
    constexpr int64_t kSlack = 2 * Conv3Shape<S>::kSlack;
    const int64_t output_rows = shape_.group * shape_.padded_output.rows();
    s.by_channels = output_rows * shape_.out / shape_.pair + kSlack;
    s.by_pixels = shape_.pair == 1 ? 0 : output_rows * shape_.out + kSlack;
    s.y = shape_.group * shape_.padded.rows() * cut.widest() + kSlack;
  }
  s.threads = allocator.take<A>(s.thread() * threads);
  s.bytes = allocator.used();
  return s;
}

template <class S>
void Conv3Backward<S>::fill_gradient(const Run<S>& run,
                                     const GradientMap<S>& dy, int image,
                                     int in_group, Panel<A> by_channels,
                                     Panel<A> by_pixels) const {
  for (int y = 0; y < shape_.output.height; ++y)
    run.kernels.gradient_row(
        dy,
        (static_cast<int64_t>(image) * shape_.output.height + y) *
            shape_.output.width,
        shape_.output.width, by_channels, by_pixels,
        shape_.padded_output.at(in_group, y, 0));
}

template <class S>
auto Conv3Backward<S>::task_of(const Space& space, const BackwardCut& cut,
                               int number, int thread) const -> Task {
  constexpr int64_t kSlack = Conv3Shape<S>::kSlack;
  const int part = cut.part(number);
  const int64_t output_rows = shape_.group * shape_.padded_output.rows();
  A* memory = space.threads + thread * space.thread();
  Task task;
  task.packed = space.packed;
  task.first = cut.items.begin(part);
  task.last = cut.items.end(part);
  task.by_channels = {memory + kSlack, output_rows};
  memory += space.by_channels;
  if (shape_.pair > 1) task.by_pixels = {memory + kSlack, output_rows};
  memory += space.by_pixels;
  task.y = {memory + kSlack, shape_.group * shape_.padded.rows()};
  task.v = memory + space.y;
  task.m = task.v + space.v;
  task.q = task.m + space.m;
  task.weights = space.weights + part * space.weight_size;
  return task;
}

template <class S>
PartSums Conv3Backward<S>::operator()(const Run<S>& run,
                                      const GradientMap<S>& dy,
                                      GradientEpilogue<S> epilogue) const {
  assert(run.training && dy.channels == shape_.out &&
         epilogue.map.channels == shape_.in);
  const auto outputs = static_cast<double>(shape_.output.pixels()) * shape_.out;
  const PassTimer timer(
      run.layer_times, PassKind::kConv3Backward, 36.0 * outputs * shape_.in,
      (2.0 * static_cast<double>(shape_.input.pixels()) * shape_.in +
       2.0 * outputs) *
          sizeof(S));
  const BackwardCut cut = cut_for(run.thread_pool.size());
  const Space space = space_in(run.workspace, run.thread_pool.size());
  const int64_t step = int64_t{9} * shape_.in;
  pack_in_pieces(
      run.thread_pool, shape_.in, shape_.out,
      [&](int output, int first, int last) {
        if (shape_.winograd) {
          kernels_.pack(
              {shape_.weight, 9, step}, output, first, last, true,
              static_cast<int64_t>(shape_.in) * shape_.out,
              space.packed + static_cast<int64_t>(output) * shape_.out);
          return;
        }
        A* to = space.packed +
                static_cast<int64_t>(output) * 9 * shape_.out / shape_.pair;
        for (int tap = 0; tap < 9;
             ++tap, to +=
                    static_cast<int64_t>(shape_.out) / shape_.pair * kOutputs)
          run.kernels.pack(
              {shape_.weight + taps_[static_cast<size_t>(tap)], 9, step},
              output, first, last, to);
      },
      kKernelsAtOnce);
  run.thread_pool.run(cut.tasks(), [&](int number, int thread) {
    Task task = task_of(space, cut, number, thread);
    task.dy = &dy;
    task.epilogue = epilogue_of_task(epilogue, cut, space.sums, number);
    if (shape_.winograd)
      winograd(task);
    else
      direct(run, task);
  });
  write_gradient(run, space);
  run.micro_batch.written(shape_.end);
  space.sums.combine();
  return space.sums;
}

// Sums of the parts, back in torchvision's layout, in the order in which they
// lie in memory: in [frequency][output][input] for Winograd, else as
// conv3_weight_gradient leaves them.
template <class S>
void Conv3Backward<S>::write_gradient(const Run<S>& run,
                                      const Space& space) const {
  const int blocks = shape_.in / kBlock;
  const auto write = [&](const auto kernel_gradients, const int64_t* offsets,
                         int64_t at, int o, int block) {
    kernel_gradients(space.weights + at, offsets, space.weight_size,
                     space.sums.parts, !run.micro_batch.first(),
                     shape_.gradient + (static_cast<int64_t>(o) * shape_.in +
                                        static_cast<int64_t>(block) * kBlock) *
                                           9);
  };
  if (shape_.winograd) {
    int64_t offsets[36];
    for (int f = 0; f < taps(); ++f)
      offsets[f] = static_cast<int64_t>(f) * shape_.out * shape_.in;
    run.thread_pool.run(shape_.out, [&](int o, int) {
      for (int block = 0; block < blocks; ++block)
        write(kernels_.kernel_gradients, offsets,
              static_cast<int64_t>(o) * shape_.in +
                  static_cast<int64_t>(block) * kBlock,
              o, block);
    });
    return;
  }
  // [c / 16][ky][o / 8][kx][8][16]
  constexpr int64_t kGroup = int64_t{8} * kBlock;
  const int64_t row = int64_t{3} * (shape_.out / 8) * kGroup;
  int64_t offsets[9];
  for (int tap = 0; tap < 9; ++tap)
    offsets[tap] = (tap / 3) * row + (tap % 3) * kGroup;
  run.thread_pool.run(blocks, [&](int block, int) {
    for (int o = 0; o < shape_.out; ++o)
      write(run.kernels.kernel_gradients, offsets,
            int64_t{3} * block * row + int64_t{3} * (o / 8) * kGroup +
                static_cast<int64_t>(o % 8) * kBlock,
            o, block);
  });
}

// Of the rows of a band, those of one parity: all of them without a stride.
template <class S>
void Conv3Backward<S>::band_back(const Run<S>& run, const Task& task, int group,
                                 int y, int rows) const {
  const int stride = shape_.stride, height = shape_.input.height,
            width = shape_.input.width;
  // Packed elements.
  const int64_t tap = static_cast<int64_t>(shape_.out) / shape_.pair * kOutputs;
  for (int up = 0; up < stride; ++up)
    for (int x = 0; x < stride; ++x) {
      const int parity = up * stride + x;
      const Class& c = classes_[static_cast<size_t>(parity)];
      const Band band{shape_.group_images(group),
                      (rows - up + stride - 1) / stride,
                      (width - x + stride - 1) / stride};
      if (band.rows == 0 || band.width == 0) continue;
      run.kernels.conv3_band_back(
          task.by_channels.units +
              shape_.padded_output.at(0, y / stride, 0) * kBlock,
          shape_.steps(shape_.padded_output), c.offsets.data(),
          static_cast<int>(c.offsets.size()), band,
          task.packed + c.first_tap * tap, 9 * tap, task.epilogue,
          (static_cast<int64_t>(group) * shape_.group * height + y + up) *
                  width +
              x,
          shape_.steps(shape_.input, stride), stride, task.y,
          shape_.padded.at(0, y + up, x), shape_.steps(shape_.padded, stride));
    }
}

template <class S>
void Conv3Backward<S>::direct(const Run<S>& run, const Task& task) const {
  shape_.clear_border(task.by_channels, shape_.padded_output,
                      shape_.out / kBlock / shape_.pair);
  if (shape_.pair > 1)
    shape_.clear_border(task.by_pixels, shape_.padded_output,
                        shape_.out / kBlock);
  shape_.clear_border(task.y, shape_.padded,
                      (task.epilogue.last - task.epilogue.first) / kBlock);
  const int channels = task.epilogue.last - task.epilogue.first,
            height = shape_.input.height, stride = shape_.stride;
  const Panel<A> dy = shape_.pair == 1 ? task.by_channels : task.by_pixels;
  // [c / 16][ky][o / 8][kx][8][16]: a channel block's sums are contiguous.
  A* weights =
      task.weights + static_cast<int64_t>(task.epilogue.first) * 9 * shape_.out;
  std::fill_n(weights, static_cast<int64_t>(channels) * 9 * shape_.out, A(0));
  const int band_rows = stride * shape_.band_rows();
  for (auto group = static_cast<int>(task.first); group < task.last; ++group) {
    const int images = shape_.group_images(group);
    for (int i = 0; i < images; ++i)
      fill_gradient(run, *task.dy, group * shape_.group + i, i,
                    task.by_channels, task.by_pixels);
    int summed = 0;  // output rows whose weight gradient is done
    for (int y = 0; y < height; y += band_rows) {
      const int end = std::min(height, y + band_rows);
      band_back(run, task, group, y, end - y);
      // Output rows all of whose input rows are there.
      const int ready =
          end == height ? shape_.output.height : (end + stride - 2) / stride;
      const Panel<A> from{
          task.y.units + shape_.padded.at(0, stride * summed - 1, -1) * kBlock,
          task.y.rows};
      const Panel<A> d{
          dy.units + shape_.padded_output.at(0, summed, 0) * kBlock, dy.rows};
      run.kernels.conv3_weight_gradient(
          from, shape_.steps(shape_.padded, stride), stride, d,
          shape_.steps(shape_.padded_output),
          {images, ready - summed, shape_.output.width}, channels, shape_.out,
          weights);
      summed = ready;
    }
  }
}

// The pixels of dy that a chunk reads, if there is such a chunk. Those above
// its tiles were read for the chunk before it.
template <class S>
NextRows Conv3Backward<S>::rows_of_chunk(const S* map, int64_t pitch,
                                         const Cut& tiles,
                                         int64_t chunk) const {
  if (chunk >= tiles.parts) return {};
  const auto pixel = [&](int part) {
    return winograd_tile(shape_.padded, kernels_.side,
                         static_cast<int>(tiles.begin(part)))
        .pixel;
  };
  const auto number = static_cast<int>(chunk);
  const int64_t first = pixel(number);
  constexpr auto kBytes = static_cast<int64_t>(sizeof(S));
  return {map + first * pitch, pitch * kBytes, shape_.out * kBytes,
          static_cast<int>(pixel(number + 1) - first)};
}

template <class S>
void Conv3Backward<S>::winograd(const Task& task) const {
  const Cut tiles = shape_.tile_chunks(kernels_);
  for (auto i = static_cast<int>(task.first); i < task.last; ++i) {
    const auto first = static_cast<int>(tiles.begin(i)),
               n = static_cast<int>(tiles.end(i)) - first;
    kernels_.gradient(*task.dy, shape_.padded, first, n, task.v, task.q);
    GradientEpilogue<S> slice = task.epilogue;
    for (; slice.first < task.epilogue.last; slice.first = slice.last) {
      slice.last = std::min(slice.first + kSlice, task.epilogue.last);
      kernels_.multiply_back(task.v, shape_.padded, first, n, shape_.out,
                             task.packed, shape_.in, slice, task.m);
      // Which the next chunk reads first.
      NextRows next_d, next_x;
      if (slice.last == task.epilogue.last) {
        next_d = rows_of_chunk(task.dy->d, task.dy->d_pitch, tiles, i + 1);
        next_x = rows_of_chunk(task.dy->x, task.dy->x_pitch, tiles, i + 1);
      }
      // The slice's map once more, where M was.
      const FeatureMap<S>& map = slice.map;
      const FeatureMap<S> in{map.x + slice.first, map.pitch,
                             slice.last - slice.first, map.scale + slice.first,
                             map.shift + slice.first};
      kernels_.input(in, shape_.padded, first, n, task.m);
      kernels_.weight_gradient(task.q, shape_.out, task.m, in.channels, n,
                               task.weights + slice.first, shape_.in,
                               i != task.first, next_d, next_x);
    }
  }
}

template class Conv3Backward<float>;
template class Conv3Backward<Bf16>;
template class Conv3Backward<double>;

}  // namespace chexnet
