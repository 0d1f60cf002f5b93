#include "pointwise.hpp"

#include <cassert>

#include "weight_packing.hpp"

// The pixels of a batch, whatever their image, are cut into tiles that stay in
// L2 with the weights:
//
//     map [pixel][channel]     panel [channel / 16][pixel][16]   out [pixel][o]
//     ==== tile 0 ====  BN+ReLU                          x weights
//     ==== tile 1 ====  ------> | block 0 | block 1 | ...  ------>  ==== tile 0
//
// Forward, a part is consecutive tiles with their sums of the outputs.
// Backward, the tile's dy is multiplied by the weights; as the result leaves
// the registers it goes through the ReLU to memory and the normalized input is
// made again, which meets dy once more for the weights' gradient. Invariant:
// who computes a tile never matters; sums belong to parts, and parts are added
// in order.
namespace chexnet {
namespace {

constexpr int kMostPixels = 112;  // of a tile
constexpr int kMostOfInference = 56;
// Few, because only from tile to tile of a part is the next one normalized
// meanwhile; several, because threads are not equally fast.
constexpr int kPartsOfThread = 4;

// Pixels a tile: its panels and the weights stay in 1 MB of L2.
template <class S>
int tile_pixels(int pair, int64_t pixels, bool training) {
  constexpr int kGroup = 14;  // of the multiply kernel
  constexpr int kLeast = 2 * kGroup;
  const int wanted = (training ? kMostPixels : kMostOfInference) * 2 /
                     static_cast<int>(sizeof(Accumulator<S>)) * pair;
  const auto groups =
      static_cast<int>(pixels / (int64_t{kGroup} * kForwardParts));
  return std::clamp(groups * kGroup, kLeast, std::max(kLeast, wanted));
}

// The same for backward, which reads and writes the sums of the weights'
// gradient for each tile: where these leave L2, as few tiles as panels in L2
// allow.
template <class S>
int backward_tile_pixels(int forward_tile, int64_t pixels, int64_t weights) {
  constexpr int64_t kL2 = int64_t{1} << 20;
  if (weights * static_cast<int64_t>(sizeof(Accumulator<S>)) < kL2)
    return forward_tile;
  const auto all = static_cast<int>(std::min<int64_t>(pixels, kMostPixels));
  return std::max(forward_tile, all + all % 2);  // whole pairs
}

MapShape output_of(const MapShape& shape, Reading reading) {
  switch (reading) {
    case Reading::kMean2x2:
      return {shape.images, shape.height / 2, shape.width / 2};
    case Reading::kSecond:
      return shape.halved();
    case Reading::kEach:
      break;
  }
  return shape;
}

}  // namespace

template <class S>
struct PointwiseConvolution<S>::ForwardSpace {
  A* packed = nullptr;
  PartSums sums;
  A* panels = nullptr;  // [thread][2]: of the tile, and of the next one
  int64_t panel = 0;
  size_t bytes = 0;
};

template <class S>
PointwiseConvolution<S>::PointwiseConvolution(Build<S>& build,
                                              const std::string& name, int in,
                                              int out, MapShape shape,
                                              Reading reading)
    : in_(in),
      out_(out),
      pair_(build.kernels.pair),
      input_(shape),
      output_(output_of(shape, reading)),
      reading_(reading) {
  assert(in % kOutputs == 0 && out % kOutputs == 0);
  assert(output_.pixels() > 0);
  tile_ = tile_pixels<S>(pair_, output_.pixels(), build.training);
  tiles_ = (output_.pixels() + tile_ - 1) / tile_;
  backward_tile_ =
      backward_tile_pixels<S>(tile_, output_.pixels(), int64_t{in} * out);
  backward_tiles_ = (output_.pixels() + backward_tile_ - 1) / backward_tile_;
  const int64_t at = build.parameters.parameter(name + ".weight");
  weight_ = static_cast<const A*>(build.parameters.values) + at;
  gradient_ = static_cast<A*>(build.parameters.gradients) + at;
  end_ = at + static_cast<int64_t>(in) * out;
  packed_ = build.keep_packed(int64_t{in} * out / pair_);
  build.need_workspace(
      forward_space(nullptr, build.threads, build.training).bytes);
  if (build.training)
    build.need_workspace(
        backward_space(nullptr, backward_cut(build.threads)).bytes);
  else
    build.need_workspace_of_thread(forward_space(nullptr, 1, false).bytes);
}

template <class S>
auto PointwiseConvolution<S>::forward_space(std::byte* region, int threads,
                                            bool training) const
    -> ForwardSpace {
  LinearAllocator allocator(region);
  ForwardSpace s;
  const int parts = static_cast<int>(std::min<int64_t>(tiles_, kForwardParts));
  if (training)
    s.packed = allocator.take<A>(static_cast<int64_t>(in_) * out_ / pair_);
  s.sums = PartSums::in(allocator, parts, out_);
  s.panel = static_cast<int64_t>(in_) * tile_ / pair_;
  s.panels = allocator.take<A>(2 * s.panel * threads);
  s.bytes = allocator.used();
  return s;
}

// Where a part's weights and the sums of their gradient would not stay in L2
// from tile to tile, it is gone through for some input channels at a time. That
// makes dy's panels once for each range, so ranges are not narrow.
template <class S>
BackwardCut PointwiseConvolution<S>::backward_cut(int threads) const {
  constexpr int64_t kBytes = int64_t{512} << 10;
  constexpr int kLeast = 256;  // channels
  const int64_t bytes = int64_t{in_} * out_ * static_cast<int64_t>(sizeof(A)) *
                        (pair_ + 1) / pair_;
  const auto wanted = static_cast<int>((bytes + kBytes - 1) / kBytes);
  return {backward_tiles_, in_, threads, BackwardCut::kParts,
          std::clamp(in_ / std::max(kLeast, out_), 1, wanted)};
}

// A thread's panels: of dy, one by channels, or of pairs two of half the size,
// by channels and by pixels; then y.
template <class S>
BackwardSpace<S> PointwiseConvolution<S>::backward_space(
    std::byte* region, const BackwardCut& cut) const {
  return {region, cut, int64_t{in_} * out_, pair_,
          (out_ + int64_t{cut.widest()} / pair_) * backward_tile_};
}

template <class S>
void PointwiseConvolution<S>::read_pixels(int64_t first, int n,
                                          int64_t* pixels) const {
  if (reading_ == Reading::kEach) {
    for (int i = 0; i < n; ++i) pixels[i] = first + i;
    return;
  }
  const int64_t in_image = static_cast<int64_t>(output_.height) * output_.width;
  for (int i = 0; i < n; ++i) {
    const int64_t image = (first + i) / in_image, rest = (first + i) % in_image;
    const int64_t y = rest / output_.width, x = rest % output_.width;
    pixels[i] = (image * input_.height + 2 * y) * input_.width + 2 * x;
  }
}

// The rows of the tile that begins at `first`, if there is one.
template <class S>
NextRows PointwiseConvolution<S>::rows_after(const S* map, int64_t pitch,
                                             int64_t first,
                                             int channels) const {
  const int64_t rows =
      std::min<int64_t>(backward_tile_, output_.pixels() - first);
  if (rows <= 0) return {};
  constexpr auto kBytes = static_cast<int64_t>(sizeof(S));
  return {map + first * pitch, pitch * kBytes, channels * kBytes,
          static_cast<int>(rows)};
}

template <class S>
double PointwiseConvolution<S>::bytes_per_pixel() const {
  return static_cast<double>((reading_ == Reading::kMean2x2 ? 4 * in_ : in_) +
                             out_) *
         sizeof(S);
}

template <class S>
void PointwiseConvolution<S>::normalize(const Pass<S>& run,
                                        const FeatureMap<S>& in, int64_t first,
                                        int n, Panel<A> panel) const {
  int64_t read[kMostPixels];
  read_pixels(first, n, read);
  if (reading_ == Reading::kMean2x2)
    run.kernels.normalize_pooled(in, read, n, input_.width, panel, 0);
  else
    run.kernels.normalize(in, read, n, panel, 0);
}

template <class S>
void PointwiseConvolution<S>::pack(const Pass<S>& run, A* packed) const {
  assert(!run.alone);
  pack_in_pieces(
      run.thread_pool, out_, in_, [&](int output, int first, int last) {
        run.kernels.pack({weight_, in_, 1}, output, first, last,
                         packed + static_cast<int64_t>(output) * in_ / pair_);
      });
}

template <class S>
PartSums PointwiseConvolution<S>::multiply(const Pass<S>& run,
                                           const FeatureMap<S>& in, S* out,
                                           int64_t pitch, OutputStage<S> stage,
                                           ImageRange images) const {
  assert(in.channels == in_ && pitch >= out_);
  assert(!run.sums() ||
         (stage.scale == nullptr && images.count == input_.images));
  const int64_t in_image = static_cast<int64_t>(output_.height) * output_.width,
                begin = images.first * in_image,
                pixels = images.count * in_image;
  const auto work = static_cast<double>(pixels);
  const PassTimer timer(run.layer_times, PassKind::kPointwiseForward,
                        2.0 * work * in_ * out_, work * bytes_per_pixel());
  const int threads = run.threads();
  const ForwardSpace space =
      forward_space(run.workspace, threads, run.training);
  A* packed = run.training ? space.packed : run.template kept_at<A>(packed_);
  if (run.pack) pack(run, packed);
  const int64_t tiles = (pixels + tile_ - 1) / tile_;
  const Cut cut{tiles, run.sums()
                           ? space.sums.parts
                           : static_cast<int>(std::min<int64_t>(
                                 tiles, int64_t{kPartsOfThread} * threads))};
  run.for_each_task(cut.parts, [&](int part, int thread) {
    A* panels = space.panels + 2 * thread * space.panel;
    if (run.sums()) space.sums.clear(part);
    OutputStage<S> own = stage;
    if (run.sums()) own.moments = space.sums.moments(part);
    bool filled = false;
    for (int64_t t = cut.begin(part); t < cut.end(part); ++t) {
      const auto pixels_of = [&](int64_t tile) {
        return static_cast<int>(
            std::min<int64_t>(tile_, pixels - tile * tile_));
      };
      const int64_t first = begin + t * tile_;
      const Panel<A> panel{panels + t % 2 * space.panel, tile_};
      if (!filled) normalize(run, in, first, pixels_of(t), panel);
      filled = reading_ == Reading::kEach && t + 1 < cut.end(part);
      NextTile<S> next;
      if (filled)
        next = {in,
                first + tile_,
                pixels_of(t + 1),
                {panels + (t + 1) % 2 * space.panel, tile_}};
      run.kernels.multiply(panel, pixels_of(t), in_, packed, out_,
                           out + first * pitch, pitch, own, next);
    }
  });
  return run.sums() ? space.sums : PartSums{};
}

template <class S>
PartSums PointwiseConvolution<S>::backward(const Pass<S>& run,
                                           const GradientMap<S>& dy,
                                           GradientEpilogue<S> epilogue) const {
  assert(run.training && dy.channels == out_ && epilogue.map.channels == in_);
  const auto pixels = static_cast<double>(output_.pixels());
  const PassTimer timer(run.layer_times, PassKind::kPointwiseBackward,
                        4.0 * pixels * in_ * out_,
                        pixels * (2 * bytes_per_pixel() + in_ * sizeof(S)));
  const BackwardCut cut = backward_cut(run.thread_pool.size());
  const BackwardSpace<S> space = backward_space(run.workspace, cut);
  pack_in_pieces(
      run.thread_pool, in_, out_, [&](int output, int first, int last) {
        run.kernels.pack(
            {weight_, 1, in_}, output, first, last,
            space.packed + static_cast<int64_t>(output) * out_ / pair_);
      });
  const int64_t dy_size = int64_t{out_} * backward_tile_;
  run.thread_pool.run(cut.tasks(), [&](int task, int thread) {
    const int part = cut.part(task);
    A* panels = space.memory_of(thread);
    const Panel<A> by_channels{panels, backward_tile_};
    const Panel<A> by_pixels{pair_ == 1 ? nullptr : panels + dy_size / pair_,
                             backward_tile_ / pair_};
    const Panel<A> y{panels + dy_size, backward_tile_ / pair_};
    const GradientEpilogue<S> own =
        epilogue_of_task(epilogue, cut, space.sums, task);
    A* weights = space.weights_of(part) + own.first;
    int64_t read[kMostPixels];
    for (int64_t t = cut.items.begin(part); t < cut.items.end(part); ++t) {
      const int64_t first = t * backward_tile_;
      const int n = static_cast<int>(
          std::min<int64_t>(backward_tile_, output_.pixels() - first));
      read_pixels(first, n, read);
      run.kernels.gradient(dy, first, n, by_channels, by_pixels);
      if (reading_ == Reading::kMean2x2)
        run.kernels.multiply_back_pooled(by_channels, n, out_, space.packed,
                                         own, read, input_.width, y);
      else
        run.kernels.multiply_back(by_channels, n, out_, space.packed, own, read,
                                  y);
      run.kernels.weight_gradient(
          pair_ == 1 ? by_channels : by_pixels, out_, y, own.last - own.first,
          n, weights, in_, t != cut.items.begin(part),
          rows_after(dy.d, dy.d_pitch, first + n, out_),
          rows_after(dy.x, dy.x_pitch, first + n, out_));
    }
  });
  const int64_t size = space.weight_size;
  const Cut rows{size / kOutputs, std::min(out_, kForwardParts)};
  run.thread_pool.run(rows.parts, [&](int part, int) {
    const int64_t first = rows.begin(part) * kOutputs,
                  end = rows.end(part) * kOutputs;
    run.kernels.add_parts(space.weights + first, size, cut.items.parts,
                          end - first, !run.micro_batch.first(),
                          gradient_ + first);
  });
  run.micro_batch.written(end_);
  space.sums.combine();
  return space.sums;
}

template class PointwiseConvolution<float>;
template class PointwiseConvolution<Bf16>;
template class PointwiseConvolution<double>;

}  // namespace chexnet
