#include "densenet.hpp"

// Moments of the plan (build.hpp): the stem is 1, each dense layer and each
// transition one more. The stem writes straight into the first block's map, a
// transition into the next block's, so there is no copy between them.
//
// Frozen parts are described and computed as in inference. The last of them
// writes into a map of which the first trained block takes batch statistics.
namespace chexnet {

template <class S>
DenseNet<S>::DenseNet(Build<S>& build, const DenseNetSpec& spec,
                      const std::string& head, const Engine::Options& options)
    : stem_(build, "features.conv0", "features.norm0", options.batch,
            options.size, normalization_of(options.mean, options.std)),
      constants_(build.template keep<A>(3 * Stem<S>::kChannels)),
      frozen_parts_(options.training ? options.frozen_parts : 0) {
  int channels = Stem<S>::kChannels;
  MapShape shape = stem_.output_shape();
  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    const std::string number = std::to_string(b + 1);
    build.training = options.trains(static_cast<int>(b) + 1);
    blocks_.emplace_back(build, "features.denseblock" + number, channels,
                         spec.blocks[b], spec, shape);
    channels = blocks_.back().features().channels;
    if (b + 1 == spec.blocks.size()) break;
    transitions_.emplace_back(build, "features.transition" + number,
                              blocks_.back().features());
    channels /= 2;
    shape = transitions_.back().output_shape();
  }
  last_norm_.emplace(build, "features.norm5", channels);
  head_.emplace(build, head, channels, options.findings, shape);
}

// Of a part: whether it is trained, and whether the next one, which reads its
// output, takes batch statistics.
template <class S>
Pass<S> DenseNet<S>::run_of(const Pass<S>& run, int part) const {
  Pass<S> own = part < frozen_parts_ ? run.in_inference() : run;
  own.feeds_trained = run.training && part + 1 == frozen_parts_;
  return own;
}

template <class S>
void DenseNet<S>::forward(const Pass<S>& run, const uint8_t* images,
                          A* logits) const {
  const Features<S>& first = blocks_.front().features();
  {
    const auto span = run.span(Phase::kForward, "stem");
    const Pass<S> own = run_of(run, kStemPart);
    const PartSums sums =
        stem_.forward(own, images, first.data(run), first.channels);
    if (own.sums()) first.statistics.set(run, sums, 0, first.count(run));
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const auto span = run.span(Phase::kForward, "block", b + 1);
    const Pass<S> own = run_of(run, static_cast<int>(b) + 1);
    blocks_[b].forward(own);
    if (b < transitions_.size())
      transitions_[b].forward(own, blocks_[b].features(),
                              blocks_[b + 1].features());
  }
  const auto span = run.span(Phase::kForward, "head");
  const Features<S>& last = blocks_.back().features();
  last_norm_->prepare(run, last.statistics, last.count(run));
  head_->forward(run, features(run), logits);
}

template <class S>
FeatureMap<S> DenseNet<S>::features(const Pass<S>& run) const {
  const Features<S>& last = blocks_.back().features();
  return last_norm_->map(run, last.data(run), last.channels);
}

template <class S>
void DenseNet<S>::backward(const Pass<S>& run, const uint8_t* images,
                           const A* dlogits) const {
  {
    const auto span = run.span(Phase::kBackward, "head");
    head_->backward_weights(run, dlogits);
    if (!run.training) return;
    const Features<S>& last = blocks_.back().features();
    GradientEpilogue<S> epilogue;
    epilogue.map = features(run);
    epilogue.mean = last.statistics.mean(run);
    epilogue.d = last.d(run);
    epilogue.d_pitch = last.channels;
    epilogue.multiplier = last_norm_->scale(run);
    last.statistics.clear_corrections(run);
    last_norm_->backward_shared(run, head_->backward_map(run, epilogue),
                                last.statistics, last.count(run));
  }
  for (size_t b = blocks_.size(); b-- > 0;) {
    if (static_cast<int>(b) + 1 < frozen_parts_) return;
    const auto span = run.span(Phase::kBackward, "block", b + 1);
    if (b < transitions_.size())
      transitions_[b].backward(run, blocks_[b].features(),
                               blocks_[b + 1].features());
    blocks_[b].backward(run);
  }
  if (frozen_parts_ > kStemPart) return;
  const auto span = run.span(Phase::kBackward, "stem");
  const Features<S>& first = blocks_.front().features();
  constexpr int kChannels = Stem<S>::kChannels;
  A* a = run.template kept_at<A>(constants_);
  A *b = a + kChannels, *c = b + kChannels;
  first.statistics.final_gradient(run, 0, kChannels, a, b, c);
  stem_.backward(run, images,
                 {first.d(run), first.channels, first.data(run), first.channels,
                  kChannels, a, b, c});
}

template class DenseNet<float>;
template class DenseNet<Bf16>;
template class DenseNet<double>;

}  // namespace chexnet
