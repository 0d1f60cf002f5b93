#include "resnet.hpp"

#include <cassert>

// One bottleneck. Maps in boxes are kept for backward:
//
//     [x] --1x1--> [narrow] --3x3--> [strided] --1x1--> [expanded] -+-> [sum]
//      |                     stride                                 ^   (relu)
//      +----------- itself, or --1x1, stride--> [projection] -------+
//
// [sum] is the x of the next one.
//
// Each convolution normalizes what it reads (BatchNorm and ReLU of narrow and
// strided); expanded and projection are normalized in the addition.
//
// Backward, d is the gradient of [sum] with zeros where its ReLU was closed. It
// goes down both branches. All sums of a stage have one shape, and when a
// bottleneck's d was consumed only its input's gradient is wanted: so a stage
// has one gradient map, d of the next becomes d of this one in place.
// Invariant: who writes dx applies the ReLU that made x; the projection (or d
// itself) is there first, then the main branch adds before that ReLU
// (kAddBeforeRelu).
namespace chexnet {
namespace {

constexpr int kWidest = 2048;

// A buffer for a gradient that is used in the backward of this layer only.
template <class S>
int add_gradient(Build<S>& build, MapShape shape, int channels) {
  if (!build.training) return -1;
  return build.plan.add(shape.template bytes<S>(channels), kTurn - build.moment,
                        kTurn - build.moment);
}

}  // namespace

template <class S>
ConvolutionOutput<S>::ConvolutionOutput(Build<S>& build,
                                        const std::string& name, int channels_,
                                        MapShape shape_)
    : shape(shape_),
      channels(channels_),
      raw(build.add_saved(shape_.template bytes<S>(channels_))),
      statistics(build, channels_),
      norm(build, name, channels_) {}

template <class S>
void ConvolutionOutput<S>::finish(const Pass<S>& run,
                                  const PartSums& sums) const {
  const double count = pixel_count(run, shape);
  if (run.training) statistics.set(run, sums, 0, count);
  norm.prepare(run, statistics, count);
}

template <class S>
Bottleneck<S>::Bottleneck(Build<S>& build, const std::string& name, int in,
                          int width, int stride, MapShape shape,
                          const IdentityVectors<S>& identity)
    : identity_(identity),
      in_(in),
      shape_(shape),
      conv1_(build, name + ".conv1", in, width, shape, Reading::kEach),
      narrow_(build, name + ".bn1", width, shape),
      conv2_(build, name + ".conv2", width, width, shape, stride),
      strided_(build, name + ".bn2", width, conv2_.output_shape()),
      conv3_(build, name + ".conv3", width, width * kExpansion,
             conv2_.output_shape(), Reading::kEach),
      expanded_(build, name + ".bn3", width * kExpansion,
                conv2_.output_shape()),
      d_narrow_(add_gradient(build, shape, width)),
      d_strided_(add_gradient(build, conv2_.output_shape(), width)),
      constants_(build.template keep<A>(3 * width * kExpansion)) {
  if (stride == 1 && in == width * kExpansion) return;
  projection_.emplace(Projection{
      PointwiseConvolution<S>(build, name + ".downsample.0", in,
                              width * kExpansion, shape,
                              stride == 1 ? Reading::kEach : Reading::kSecond),
      ConvolutionOutput<S>(build, name + ".downsample.1", width * kExpansion,
                           conv2_.output_shape())});
}

template <class S>
void Bottleneck<S>::forward(const Pass<S>& run, const S* x, S* out) const {
  const FeatureMap<S> input = identity_.map(run, x, in_);
  if (run.training) {
    narrow_.finish(
        run, conv1_.forward(run, input, narrow_.data(run), narrow_.channels));
    strided_.finish(run, conv2_.forward(run, narrow_.map(run),
                                        strided_.data(run), strided_.channels));
  } else {
    const ImageRange all{0, shape_.images};
    narrow_.finish(run, {});
    conv1_.forward_normalized(run, input, narrow_.data(run), narrow_.channels,
                              narrow_.norm.scale(run), narrow_.norm.shift(run),
                              all);
    conv2_.forward_normalized(run, narrow_.data(run), narrow_.channels,
                              strided_.data(run), strided_.channels, all);
    strided_.finish(run, {});
  }
  expanded_.finish(run,
                   conv3_.forward(run, strided_.map(run), expanded_.data(run),
                                  expanded_.channels));
  assert(projection_ || in_ == expanded_.channels);
  FeatureMap<S> other = input;
  if (projection_) {
    const ConvolutionOutput<S>& map = projection_->map;
    map.finish(run, projection_->convolution.forward(run, input, map.data(run),
                                                     map.channels));
    other = map.map(run);
  }
  const int64_t pixels = expanded_.shape.pixels();
  const PassTimer timer(
      run.layer_times, PassKind::kResidual, 0,
      3.0 * static_cast<double>(pixels) * expanded_.channels * sizeof(S));
  const Cut cut{pixels, kForwardParts};
  run.thread_pool.run(cut.parts, [&](int part, int) {
    run.kernels.residual(expanded_.map(run), other, cut.begin(part),
                         static_cast<int>(cut.end(part) - cut.begin(part)),
                         out);
  });
}

template <class S>
PartSums Bottleneck<S>::sums_of(const Pass<S>& run, const S* d,
                                const ConvolutionOutput<S>& map) const {
  const int64_t pixels = map.shape.pixels();
  const PassTimer timer(
      run.layer_times, PassKind::kResidual, 0,
      2.0 * static_cast<double>(pixels) * map.channels * sizeof(S));
  LinearAllocator allocator(run.workspace);
  const PartSums sums = PartSums::in(allocator, kForwardParts, map.channels);
  const Cut cut{pixels, sums.parts};
  constexpr int64_t kPixels = 64;  // sums in A before they become double
  run.thread_pool.run(cut.parts, [&](int part, int) {
    sums.clear(part);
    for (int64_t first = cut.begin(part); first < cut.end(part);
         first += kPixels)
      run.kernels.residual_sums(
          d, map.data(run), map.channels, map.statistics.mean(run), first,
          static_cast<int>(std::min(kPixels, cut.end(part) - first)),
          sums.first(part), sums.second(part));
  });
  sums.combine();
  return sums;
}

template <class S>
GradientMap<S> Bottleneck<S>::own_gradient(const Pass<S>& run,
                                           const PartSums& sums,
                                           const ConvolutionOutput<S>& map,
                                           const S* d) const {
  A* a = run.template kept_at<A>(constants_);
  A *b = a + map.channels, *c = b + map.channels;
  map.norm.backward_own(run, sums, map.statistics, pixel_count(run, map.shape),
                        a, b, c);
  return {d, map.channels, map.data(run), map.channels, map.channels, a, b, c};
}

template <class S>
void Bottleneck<S>::backward(const Pass<S>& run, const S* x, S* d,
                             S* dx) const {
  assert(projects() == (dx != d));  // in place without a projection
  GradientEpilogue<S> input;        // dx, through the ReLU that made x
  input.map = identity_.map(run, x, in_);
  input.mean = input.map.shift;
  input.d = dx;
  input.d_pitch = in_;
  input.multiplier = input.map.scale;
  if (projection_) {
    const ConvolutionOutput<S>& map = projection_->map;
    const GradientMap<S> dy = own_gradient(run, sums_of(run, d, map), map, d);
    if (map.shape.height != shape_.height)  // pixels the stride leaves out
      std::fill_n(reinterpret_cast<std::byte*>(dx),
                  shape_.template bytes<S>(in_), std::byte{0});
    projection_->convolution.backward(run, dy, input);
  }
  const auto through = [&](const ConvolutionOutput<S>& map, int buffer) {
    GradientEpilogue<S> epilogue;
    epilogue.map = map.map(run);
    epilogue.mean = map.statistics.mean(run);
    epilogue.d = run.template buffer<S>(buffer);
    epilogue.d_pitch = map.channels;
    epilogue.multiplier = input.map.scale;  // ones
    return epilogue;
  };
  const GradientEpilogue<S> strided = through(strided_, d_strided_),
                            narrow = through(narrow_, d_narrow_);
  GradientMap<S> dy =
      own_gradient(run, sums_of(run, d, expanded_), expanded_, d);
  dy =
      own_gradient(run, conv3_.backward(run, dy, strided), strided_, strided.d);
  dy = own_gradient(run, conv2_.backward(run, dy, narrow), narrow_, narrow.d);
  input.accumulate = AccumulateMode::kAddBeforeRelu;
  conv1_.backward(run, dy, input);
}

template <class S>
ResNet<S>::ResNet(Build<S>& build, const ResNetSpec& spec,
                  const std::string& head, const Engine::Options& options)
    : stem_(build, "conv1", "bn1", options.batch, options.size,
            normalization_of(options.mean, options.std)),
      identity_{build.template keep<A>(kWidest),
                build.template keep<A>(kWidest)},
      frozen_parts_(options.training ? options.frozen_parts : 0) {
  MapShape shape = stem_.output_shape();
  int channels = Stem<S>::kChannels;
  // A map: from its producer's forward to the backward of its reader, the next
  // layer, if that has one.
  const auto add_map = [&](int producer, int reader_part) {
    const bool kept = options.trains(reader_part);
    return build.plan.add(shape.template bytes<S>(channels), producer,
                          kept ? kTurn - producer - 1 : producer + 1);
  };
  // The first trained bottleneck writes the gradient of a frozen map, too.
  const auto add_gradients = [&](int producer, int last_reader, int part) {
    if (!options.trains(part + 1)) return -1;
    return build.plan.add(shape.template bytes<S>(channels),
                          kTurn - last_reader, kTurn - producer);
  };
  pooled_ = add_map(build.moment, kStemPart + 1);
  d_pooled_ = add_gradients(build.moment, build.moment + 1, kStemPart);
  for (size_t stage = 0; stage < spec.blocks.size(); ++stage) {
    const int width = 64 << stage, first = build.moment + 1;
    const int part = static_cast<int>(stage) + 1;
    build.training = options.trains(part);
    int gradient = -1;
    for (int b = 0; b < spec.blocks[stage]; ++b) {
      ++build.moment;
      const std::string name =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(b);
      Bottleneck<S> bottleneck(build, name, channels, width,
                               b == 0 && stage > 0 ? 2 : 1, shape, identity_);
      shape = bottleneck.output_shape();
      channels = bottleneck.output_channels();
      if (b == 0)
        gradient = add_gradients(first, first + spec.blocks[stage], part);
      const bool last = b + 1 == spec.blocks[stage];
      const int sum = add_map(build.moment, last ? part + 1 : part);
      blocks_.push_back({std::move(bottleneck), sum, gradient, part});
    }
  }
  head_.emplace(build, head, channels, options.findings, shape);
  LinearAllocator allocator;
  PartSums::in(allocator, kForwardParts, channels);
  build.need_workspace(allocator.used());
}

template <class S>
const S* ResNet<S>::input(const Pass<S>& run, size_t block) const {
  return run.template buffer<S>(block == 0 ? pooled_ : blocks_[block - 1].sum);
}

template <class S>
void ResNet<S>::forward(const Pass<S>& run, const uint8_t* images,
                        A* logits) const {
  std::fill_n(run.template kept_at<A>(identity_.ones), kWidest, A(1));
  std::fill_n(run.template kept_at<A>(identity_.zeros), kWidest, A(0));
  {
    const auto span = run.span(Phase::kForward, "stem");
    stem_.forward(frozen_parts_ > kStemPart ? run.in_inference() : run, images,
                  run.template buffer<S>(pooled_), Stem<S>::kChannels);
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const auto span = run.span(Phase::kForward, "block", b + 1);
    const bool frozen = blocks_[b].part < frozen_parts_;
    blocks_[b].bottleneck.forward(frozen ? run.in_inference() : run,
                                  input(run, b),
                                  run.template buffer<S>(blocks_[b].sum));
  }
  const auto span = run.span(Phase::kForward, "head");
  head_->forward(run, features(run), logits);
}

template <class S>
FeatureMap<S> ResNet<S>::features(const Pass<S>& run) const {
  return identity_.map(run, input(run, blocks_.size()),
                       blocks_.back().bottleneck.output_channels());
}

template <class S>
void ResNet<S>::backward(const Pass<S>& run, const uint8_t* images,
                         const A* dlogits) const {
  {
    const auto span = run.span(Phase::kBackward, "head");
    head_->backward_weights(run, dlogits);
    if (!run.training) return;
    const int channels = blocks_.back().bottleneck.output_channels();
    GradientEpilogue<S> epilogue;
    epilogue.map = features(run);
    epilogue.mean = epilogue.map.shift;
    epilogue.d = run.template buffer<S>(blocks_.back().gradient);
    epilogue.d_pitch = channels;
    epilogue.multiplier = epilogue.map.scale;
    head_->backward_map(run, epilogue);
  }
  for (size_t b = blocks_.size(); b-- > 0;) {
    const Block& block = blocks_[b];
    if (block.part < frozen_parts_) return;
    const auto span = run.span(Phase::kBackward, "block", b + 1);
    S* d = run.template buffer<S>(block.gradient);
    S* before =
        run.template buffer<S>(b == 0 ? d_pooled_ : blocks_[b - 1].gradient);
    block.bottleneck.backward(run, input(run, b), d,
                              block.bottleneck.projects() ? before : d);
  }
  if (frozen_parts_ > kStemPart) return;
  const auto span = run.span(Phase::kBackward, "stem");
  constexpr int kChannels = Stem<S>::kChannels;
  const FeatureMap<S> identity = identity_.map(run, input(run, 0), kChannels);
  stem_.backward(
      run, images,
      {run.template buffer<S>(d_pooled_), kChannels, identity.x, kChannels,
       kChannels, identity.scale, identity.shift, identity.shift});
}

template class ResNet<float>;
template class ResNet<Bf16>;
template class ResNet<double>;

}  // namespace chexnet
