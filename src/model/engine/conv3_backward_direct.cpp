#include <algorithm>
#include <cassert>
#include <vector>

#include "conv3_backward.hpp"
#include "weight_packing.hpp"

// Two things are made of the gradient dy of the outputs while both are in L2:
//
//     dy --- w turned by 180 degrees ---> dx, to memory
//        \                                |
//         \                               v
//          +------------------------------> dw += dy x y
//
// A task goes image by image. dy is a padded panel. dx leaves through the
// epilogue, which also gives the normalized input y back; that goes into a
// panel. Invariant of `summed`: dw holds the products of all output rows below
// it, and all input rows those need are in y. The last rows of an image wait
// for its last input row.
//
// With stride 2 an input pixel is read by 1, 2 or 4 taps, by the parity of its
// row and column:
//
//     parity  (0,0): tap 4         (0,1): taps 3 5
//             (1,0): taps 1 7      (1,1): taps 0 2 6 8
//
// so there are four classes of input pixels, each with its list of taps
// (`classes_`).
namespace chexnet {
namespace {

template <class S>
class DirectBackward final : public Conv3Backward<S> {
 public:
  using A = Accumulator<S>;
  DirectBackward(Build<S>& build, const Conv3Shape<S>& shape)
      : shape_(shape),
        cut_(conv3_cut(shape, shape.groups, 9, build.threads)),
        dy_rows_(shape.group * shape.padded_output.rows()),
        y_rows_(shape.group * shape.padded.rows()),
        by_channels_(dy_rows_ * shape.out / shape.pair + 2 * kSlack),
        by_pixels_(shape.pair == 1 ? 0 : dy_rows_ * shape.out + 2 * kSlack),
        y_(y_rows_ * cut_.widest() + 2 * kSlack) {
    // Output o reads input stride * o + tap - 1, so input i is read by output
    // (i + 1 - tap) / stride.
    const int stride = shape.stride;
    for (int parity = 0; parity < stride * stride; ++parity) {
      const int y = parity / stride, x = parity % stride;
      Class c{{}, static_cast<int>(taps_.size())};
      for (int tap = 0; tap < 9; ++tap) {
        const int oy = y + 1 - tap / 3, ox = x + 1 - tap % 3;
        if (oy % stride != 0 || ox % stride != 0) continue;
        add_block_offsets(c.offsets, shape.out / kBlock / shape.pair, dy_rows_,
                          shape.padded_output, oy / stride, ox / stride);
        taps_.push_back(tap);
      }
      classes_.push_back(std::move(c));
    }
    build.need_workspace(space(nullptr).bytes);
  }

  PartSums compute(const Pass<S>& run, const GradientMap<S>& dy,
                   const GradientEpilogue<S>& epilogue) const override {
    const BackwardSpace<S> space = this->space(run.workspace);
    const int64_t tap_size = this->tap_size();
    pack_in_pieces(
        run.thread_pool, shape_.in, shape_.out,
        [&](int output, int first, int last) {
          A* to = space.packed + int64_t{9} * (output / kOutputs) * tap_size;
          for (const int tap : taps_) {
            run.kernels.pack({shape_.weight + tap, 9, int64_t{9} * shape_.in},
                             output, first, last, to);
            to += tap_size;
          }
        },
        kKernelsAtOnce);
    run.thread_pool.run(cut_.tasks(), [&](int number, int thread) {
      const Task task = task_of(space, epilogue, number, thread);
      clear(task);
      const int part = cut_.part(number);
      for (auto group = static_cast<int>(cut_.items.begin(part));
           group < cut_.items.end(part); ++group)
        image_group(run, dy, task, group);
    });
    write_gradient(run, space);
    return space.sums;
  }

 private:
  static constexpr int64_t kSlack = Conv3Shape<S>::kSlack;
  // Of input pixels of one parity of row and column.
  struct Class {
    std::vector<int64_t> offsets;
    int first_tap = 0;  // in taps_
  };
  // A part of the image groups, a range of input channels, a thread's panels.
  struct Task {
    GradientEpilogue<S> epilogue;
    Panel<A> by_channels, by_pixels, y;  // dy twice, and the normalized input
    const A* packed = nullptr;
    A* weights = nullptr;  // sums of the part and the range
    int channels() const { return epilogue.last - epilogue.first; }
  };

  BackwardSpace<S> space(std::byte* region) const {
    return {region, cut_, int64_t{9} * shape_.in * shape_.out, shape_.pair,
            by_channels_ + by_pixels_ + y_};
  }
  // Packed weights of 32 input channels for one tap.
  int64_t tap_size() const {
    return int64_t{shape_.out} / shape_.pair * kOutputs;
  }

  Task task_of(const BackwardSpace<S>& space,
               const GradientEpilogue<S>& epilogue, int number,
               int thread) const {
    A* memory = space.memory_of(thread) + kSlack;
    Task task;
    task.epilogue = epilogue_of_task(epilogue, cut_, space.sums, number);
    task.by_channels = {memory, dy_rows_};
    if (shape_.pair > 1) task.by_pixels = {memory + by_channels_, dy_rows_};
    task.y = {memory + by_channels_ + by_pixels_, y_rows_};
    task.packed = space.packed;
    // [c / 16][ky][o / 8][kx][8][16]: a channel block's sums are contiguous.
    task.weights = space.weights_of(cut_.part(number)) +
                   int64_t{task.epilogue.first} * 9 * shape_.out;
    return task;
  }

  void clear(const Task& task) const {
    shape_.clear_border(task.by_channels, shape_.padded_output,
                        shape_.out / kBlock / shape_.pair);
    if (shape_.pair > 1)
      shape_.clear_border(task.by_pixels, shape_.padded_output,
                          shape_.out / kBlock);
    shape_.clear_border(task.y, shape_.padded, task.channels() / kBlock);
    std::fill_n(task.weights, int64_t{task.channels()} * 9 * shape_.out, A(0));
  }

  void image_group(const Pass<S>& run, const GradientMap<S>& map,
                   const Task& task, int group) const {
    const int images = shape_.group_images(group), stride = shape_.stride,
              height = shape_.input.height, out_height = shape_.output.height,
              out_width = shape_.output.width;
    int64_t pixel = int64_t{group} * shape_.group * out_height * out_width;
    for (int i = 0; i < images; ++i)
      for (int y = 0; y < out_height; ++y, pixel += out_width)
        run.kernels.gradient_row(map, pixel, out_width, task.by_channels,
                                 task.by_pixels,
                                 shape_.padded_output.at(i, y, 0));
    const Panel<A> dy = shape_.pair == 1 ? task.by_channels : task.by_pixels;
    const int band_rows = stride * shape_.band_rows();
    int summed = 0;  // output rows whose weight gradient is done
    for (int y = 0; y < height; y += band_rows) {
      const int end = std::min(height, y + band_rows);
      band_back(run, task, group, y, end - y);
      // Output rows all of whose input rows are there.
      const int ready =
          end == height ? out_height : (end + stride - 2) / stride;
      const Panel<A> from{
          task.y.units + shape_.padded.at(0, stride * summed - 1, -1) * kBlock,
          task.y.rows};
      const Panel<A> d{
          dy.units + shape_.padded_output.at(0, summed, 0) * kBlock, dy.rows};
      run.kernels.conv3_weight_gradient(
          from, shape_.steps(shape_.padded, stride), stride, d,
          shape_.steps(shape_.padded_output),
          {images, ready - summed, out_width}, task.channels(), shape_.out,
          task.weights);
      summed = ready;
    }
  }

  // Of the rows of a band, those of one parity: all of them without a stride.
  void band_back(const Pass<S>& run, const Task& task, int group, int y,
                 int rows) const {
    const int stride = shape_.stride, height = shape_.input.height,
              width = shape_.input.width;
    for (int up = 0; up < stride; ++up)
      for (int x = 0; x < stride; ++x) {
        const int parity = up * stride + x;
        const Class& c = classes_[static_cast<size_t>(parity)];
        const Band band{shape_.group_images(group),
                        (rows - up + stride - 1) / stride,
                        (width - x + stride - 1) / stride};
        if (band.rows == 0 || band.width == 0) continue;
        const int64_t row = int64_t{group} * shape_.group * height + y + up;
        run.kernels.conv3_band_back(
            task.by_channels.units +
                shape_.padded_output.at(0, y / stride, 0) * kBlock,
            shape_.steps(shape_.padded_output), c.offsets.data(),
            static_cast<int>(c.offsets.size()), band,
            task.packed + c.first_tap * tap_size(), 9 * tap_size(),
            task.epilogue, row * width + x, shape_.steps(shape_.input, stride),
            stride, task.y, shape_.padded.at(0, y + up, x),
            shape_.steps(shape_.padded, stride));
      }
  }

  // Sums of the parts, [c / 16][ky][o / 8][kx][8][16], back in torchvision's
  // layout, in the order in which they lie in memory.
  void write_gradient(const Pass<S>& run, const BackwardSpace<S>& space) const {
    constexpr int64_t kGroup = int64_t{8} * kBlock;
    const int64_t row = int64_t{3} * (shape_.out / 8) * kGroup;
    int64_t offsets[9];
    for (int tap = 0; tap < 9; ++tap)
      offsets[tap] = (tap / 3) * row + (tap % 3) * kGroup;
    run.thread_pool.run(shape_.in / kBlock, [&](int block, int) {
      for (int o = 0; o < shape_.out; ++o) {
        const int64_t at = 3 * (block * row + int64_t{o} / 8 * kGroup) +
                           int64_t{o} % 8 * kBlock,
                      to = int64_t{o} * shape_.in + int64_t{block} * kBlock;
        run.kernels.kernel_gradients(
            space.weights + at, offsets, space.weight_size, space.sums.parts,
            !run.micro_batch.first(), shape_.gradient + 9 * to);
      }
    });
  }

  Conv3Shape<S> shape_;
  BackwardCut cut_;                      // of the image groups
  int64_t dy_rows_, y_rows_;             // of the panels
  int64_t by_channels_, by_pixels_, y_;  // elements of a thread's panels
  std::vector<Class> classes_;  // [row parity * stride + column parity]
  std::vector<int> taps_;       // all 9 in the order of classes
};

}  // namespace

template <class S>
std::unique_ptr<Conv3Backward<S>> direct_backward(Build<S>& build,
                                                  const Conv3Shape<S>& shape) {
  return std::make_unique<DirectBackward<S>>(build, shape);
}

template std::unique_ptr<Conv3Backward<float>> direct_backward(
    Build<float>&, const Conv3Shape<float>&);
template std::unique_ptr<Conv3Backward<Bf16>> direct_backward(
    Build<Bf16>&, const Conv3Shape<Bf16>&);
template std::unique_ptr<Conv3Backward<double>> direct_backward(
    Build<double>&, const Conv3Shape<double>&);

}  // namespace chexnet
