#include "dense_block.hpp"

#include <cassert>

// One map holds all features of a block; a layer reads a prefix and appends 32
// channels:
//
//     channels   0          in    in+32   in+64                channels
//     map       [ the input  | l 0  | l 1  | ...                     ]
//     layer 0    reads ----->| writes
//     layer 1    reads ------------>| writes
//
// The gradient map has the same layout. Backward, from the last layer to the
// first: a layer takes the gradient of its own 32 channels, to which all later
// layers have added by then, and adds to the prefix. Invariant: before backward
// of layer i, the gradient of its channels is complete but for offset and
// slope, which final_gradient applies (norm.hpp).
namespace chexnet {

template <class S>
DenseBlock<S>::DenseBlock(Build<S>& build, const std::string& name, int in,
                          int layers, const DenseNetSpec& spec, MapShape shape)
    : in_(in),
      growth_(spec.growth),
      width_(spec.growth * spec.bottleneck),
      features_{shape, in + layers * spec.growth, -1, -1,
                ChannelStatistics<S>(build, in + layers * spec.growth)},
      constants_(build.template keep<A>(3 * width_)),
      ones_(build.template keep<A>(width_)) {
  assert(layers > 0 && in % kOutputs == 0 && growth_ % kOutputs == 0);
  const int producer = build.moment;
  const size_t bytes = shape.bytes<S>(width_);
  // In inference threads are in different layers at a time, each with other
  // images.
  const int shared =
      build.training ? -1
                     : build.plan.add(bytes, producer + 1, producer + layers);
  for (int i = 0; i < layers; ++i) {
    ++build.moment;
    const std::string layer = name + ".denselayer" + std::to_string(i + 1);
    const int channels = in + i * growth_;
    layers_.push_back(
        {Norm<S>(build, layer + ".norm1", channels),
         PointwiseConvolution<S>(build, layer + ".conv1", channels, width_,
                                 shape, Reading::kEach),
         ChannelStatistics<S>(build, width_),
         Norm<S>(build, layer + ".norm2", width_),
         Convolution3x3<S>(build, layer + ".conv2", width_, growth_, shape, 1),
         build.training ? build.add_saved(bytes) : shared,
         build.training
             ? build.plan.add(bytes, kTurn - build.moment, kTurn - build.moment)
             : -1});
  }
  const int reader = build.moment + 1;
  features_.map = build.plan.add(features_.bytes(), producer,
                                 build.training ? kTurn - producer : reader);
  if (build.training)
    features_.gradient =
        build.plan.add(features_.bytes(), kTurn - reader, kTurn - producer);
}

template <class S>
void DenseBlock<S>::forward(const Pass<S>& run) const {
  if (!run.training) return infer(run);
  S* x = features_.data(run);
  const int64_t pitch = features_.channels;
  const double count = features_.count(run);
  int channels = in_;
  for (const Layer& layer : layers_) {
    S* t = run.template buffer<S>(layer.bottleneck);
    layer.norm1.prepare(run, features_.statistics, count);
    const PartSums narrow =
        layer.conv1.forward(run, layer.norm1.map(run, x, pitch), t, width_);
    layer.statistics.set(run, narrow, 0, count);
    layer.norm2.prepare(run, layer.statistics, count);
    const PartSums grown = layer.conv2.forward(
        run, layer.norm2.map(run, t, width_), x + channels, pitch);
    features_.statistics.set(run, grown, channels, count);
    channels += growth_;
  }
}

// Without batch statistics a layer knows its norms before it begins. So the
// second one is applied where the first convolution's sums leave the registers,
// and a few images go through all layers while their maps stay in the caches:
//
//   images 0 1 2 | 3 4 5 | 6 7 8 | …   thread 0 takes 0 1 2 through all layers,
//                                      thread 1 takes 3 4 5, who is done the
//                                      next
//
// Nobody waits for another thread between two layers. Where threads would be
// left without images, all of them divide each layer instead.
template <class S>
void DenseBlock<S>::infer(const Pass<S>& run) const {
  Pass<S> packed = run;
  packed.pack = false;
  for (const Layer& layer : layers_) {
    layer.norm1.prepare(run, features_.statistics, 0);
    layer.norm2.prepare(run, layer.statistics, 0);
    if (!run.pack) continue;
    layer.conv1.pack(run);
    layer.conv2.pack(run);
  }
  const int images = features_.shape.images, threads = run.thread_pool.size(),
            rounds = (images + threads - 1) / threads;
  constexpr double kMostIdle = 1.15;  // of the time without idle threads
  if (rounds * threads > kMostIdle * images) return infer(packed, {0, images});
  const int at_once = std::min(images_at_once(), rounds);
  const int groups = (rounds + at_once - 1) / at_once * threads;
  const Cut cut{images, std::min(groups, images)};
  std::vector<LayerTimes> times(static_cast<size_t>(threads));
  run.thread_pool.run(cut.parts, [&](int group, int thread) {
    Pass<S> own = packed.alone_on(thread);
    if (run.layer_times != nullptr)
      own.layer_times = &times[static_cast<size_t>(thread)];
    const auto first = static_cast<int>(cut.begin(group));
    infer(own, {first, static_cast<int>(cut.end(group)) - first});
  });
  if (run.layer_times != nullptr) run.layer_times->add_mean_of(times);
}

template <class S>
void DenseBlock<S>::infer(const Pass<S>& run, ImageRange images) const {
  S* x = features_.data(run);
  const int64_t pitch = features_.channels;
  int channels = in_;
  for (const Layer& layer : layers_) {
    S* t = run.template buffer<S>(layer.bottleneck);
    layer.conv1.forward_normalized(run, layer.norm1.map(run, x, pitch), t,
                                   width_, layer.norm2.scale(run),
                                   layer.norm2.shift(run), images);
    layer.conv2.forward_normalized(run, t, width_, x + channels, pitch, images);
    channels += growth_;
  }
}

template <class S>
int DenseBlock<S>::images_at_once() const {
  constexpr size_t kBytesOfThread = 4 << 20;
  const MapShape image{1, features_.shape.height, features_.shape.width};
  const size_t bytes = image.bytes<S>(features_.channels + width_);
  return std::max(1, static_cast<int>(kBytesOfThread / bytes));
}

template <class S>
void DenseBlock<S>::backward(const Pass<S>& run) const {
  std::fill_n(run.template kept_at<A>(ones_), width_, A(1));
  for (size_t i = layers_.size(); i-- > 0;)
    backward(run, layers_[i], in_ + static_cast<int>(i) * growth_);
}

template <class S>
void DenseBlock<S>::backward(const Pass<S>& run, const Layer& layer,
                             int first_new) const {
  const S* x = features_.data(run);
  S* dx = features_.d(run);
  const S* t = run.template buffer<S>(layer.bottleneck);
  S* dt = run.template buffer<S>(layer.d);
  const int64_t pitch = features_.channels;
  const double count = features_.count(run);
  A* a = run.template kept_at<A>(constants_);
  A *b = a + width_, *c = b + width_;

  features_.statistics.final_gradient(run, first_new, growth_, a, b, c);
  const GradientMap<S> grown{
      dx + first_new, pitch, x + first_new, pitch, growth_, a, b, c};
  GradientEpilogue<S> epilogue;
  epilogue.map = layer.norm2.map(run, t, width_);
  epilogue.mean = layer.statistics.mean(run);
  epilogue.d = dt;
  epilogue.d_pitch = width_;
  epilogue.multiplier = run.template kept_at<A>(ones_);
  const PartSums narrow_sums = layer.conv2.backward(run, grown, epilogue);

  layer.norm2.backward_own(run, narrow_sums, layer.statistics, count, a, b, c);
  const GradientMap<S> narrow{dt, width_, t, width_, width_, a, b, c};
  epilogue.map = layer.norm1.map(run, x, pitch);
  epilogue.mean = features_.statistics.mean(run);
  epilogue.d = dx;
  epilogue.d_pitch = pitch;
  epilogue.multiplier = layer.norm1.scale(run);
  epilogue.accumulate = AccumulateMode::kAdd;
  const PartSums sums = layer.conv1.backward(run, narrow, epilogue);
  layer.norm1.backward_shared(run, sums, features_.statistics, count);
}

template <class S>
Transition<S>::Transition(Build<S>& build, const std::string& name,
                          const Features<S>& from)
    : out_(from.channels / 2),
      norm_(build, name + ".norm", from.channels),
      conv_(build, name + ".conv", from.channels, out_, from.shape,
            Reading::kMean2x2),
      constants_(build.template keep<Accumulator<S>>(3 * out_)) {
  ++build.moment;
}

template <class S>
void Transition<S>::forward(const Pass<S>& run, const Features<S>& from,
                            const Features<S>& to) const {
  assert(to.channels >= out_);
  norm_.prepare(run, from.statistics, from.count(run));
  const PartSums sums =
      conv_.forward(run, norm_.map(run, from.data(run), from.channels),
                    to.data(run), to.channels);
  if (run.sums()) to.statistics.set(run, sums, 0, to.count(run));
}

template <class S>
void Transition<S>::backward(const Pass<S>& run, const Features<S>& from,
                             const Features<S>& to) const {
  auto* a = run.template kept_at<Accumulator<S>>(constants_);
  auto *b = a + out_, *c = b + out_;
  to.statistics.final_gradient(run, 0, out_, a, b, c);
  const GradientMap<S> dy{
      to.d(run), to.channels, to.data(run), to.channels, out_, a, b, c};
  GradientEpilogue<S> epilogue;
  epilogue.map = norm_.map(run, from.data(run), from.channels);
  epilogue.mean = from.statistics.mean(run);
  epilogue.d = from.d(run);
  epilogue.d_pitch = from.channels;
  epilogue.multiplier = norm_.scale(run);
  if (from.shape.height % 2 != 0 ||
      from.shape.width % 2 != 0)  // the mean leaves some pixels out
    std::fill_n(reinterpret_cast<std::byte*>(from.d(run)), from.bytes(),
                std::byte{0});
  from.statistics.clear_corrections(run);
  const PartSums sums = conv_.backward(run, dy, epilogue);
  norm_.backward_shared(run, sums, from.statistics, from.count(run));
}

template class DenseBlock<float>;
template class DenseBlock<Bf16>;
template class DenseBlock<double>;
template class Transition<float>;
template class Transition<Bf16>;
template class Transition<double>;

}  // namespace chexnet
