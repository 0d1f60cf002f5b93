#include "classifier_head.hpp"

#include <cassert>

// map [image][pixel][channel] -> mean over pixels -> features [image][channel]
// -> logits. One task an image; features are kept for the weights' gradient.
// Both backward halves write nothing that the other reads but dfeatures, so a
// frozen backbone stops after the first.
namespace chexnet {
namespace {

// In a fixed order; four sums, so that the additions do not wait for each
// other.
template <class A>
double dot(const A* a, const A* b, int n) {
  assert(n % 4 == 0);
  double sum[4] = {};
  for (int i = 0; i < n; i += 4)
    for (int j = 0; j < 4; ++j)
      sum[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace

template <class S>
ClassifierHead<S>::ClassifierHead(Build<S>& build,
                                  const std::string& classifier, int channels,
                                  int findings, MapShape shape)
    : channels_(channels),
      findings_(findings),
      shape_(shape),
      features_(build.template keep<A>(shape.images * channels)),
      dfeatures_(build.template keep<A>(shape.images * channels)) {
  const int64_t weight = build.parameters.parameter(classifier + ".weight"),
                bias = build.parameters.parameter(classifier + ".bias");
  weight_ = static_cast<const A*>(build.parameters.values) + weight;
  bias_ = static_cast<const A*>(build.parameters.values) + bias;
  weight_gradient_ = static_cast<A*>(build.parameters.gradients) + weight;
  bias_gradient_ = static_cast<A*>(build.parameters.gradients) + bias;
  weight_end_ = weight + static_cast<int64_t>(findings) * channels;
  bias_end_ = bias + findings;
  LinearAllocator allocator;
  PartSums::in(allocator, std::min(shape.images, kForwardParts), channels);
  build.need_workspace(allocator.used());
}

template <class S>
void ClassifierHead<S>::forward(const Pass<S>& run, const FeatureMap<S>& in,
                                A* logits) const {
  assert(in.channels == channels_);
  const PassTimer timer(
      run.layer_times, PassKind::kClassifierHead, 0,
      static_cast<double>(shape_.pixels()) * channels_ * sizeof(S));
  A* features = run.template kept_at<A>(features_);
  const int pixels = shape_.height * shape_.width;
  run.thread_pool.run(shape_.images, [&](int image, int) {
    A* own = features + static_cast<int64_t>(image) * channels_;
    run.kernels.mean(in, static_cast<int64_t>(image) * pixels, pixels, own);
    for (int k = 0; k < findings_; ++k)
      logits[image * findings_ + k] =
          static_cast<A>(static_cast<double>(bias_[k]) +
                         dot(own, weight_ + k * channels_, channels_));
  });
}

template <class S>
void ClassifierHead<S>::features(const Pass<S>& run, const FeatureMap<S>& in,
                                 A* into) const {
  assert(in.channels == channels_);
  const int64_t pixels = int64_t{shape_.height} * shape_.width;
  run.thread_pool.run(shape_.images, [&](int image, int) {
    for (int64_t p = image * pixels; p < (image + 1) * pixels; ++p)
      run.kernels.mean(in, p, 1, into + p * channels_);
  });
}

template <class S>
void ClassifierHead<S>::dfeatures_of(const A* dlogits, int image,
                                     A* into) const {
  std::fill_n(into, channels_, A(0));
  for (int k = 0; k < findings_; ++k)
    for (int c = 0; c < channels_; ++c)
      into[c] += dlogits[image * findings_ + k] * weight_[k * channels_ + c];
}

// The gradient of a mean is the same for each pixel.
template <class S>
void ClassifierHead<S>::feature_gradient(const Pass<S>& run, const A* dlogits,
                                         A* into) const {
  const int64_t pixels = int64_t{shape_.height} * shape_.width;
  run.thread_pool.run(shape_.images, [&](int image, int) {
    A* first = into + image * pixels * channels_;
    dfeatures_of(dlogits, image, first);
    for (int c = 0; c < channels_; ++c) first[c] /= static_cast<A>(pixels);
    for (int64_t p = 1; p < pixels; ++p)
      std::copy_n(first, channels_, first + p * channels_);
  });
}

template <class S>
void ClassifierHead<S>::backward_weights(const Pass<S>& run,
                                         const A* dlogits) const {
  const PassTimer timer(run.layer_times, PassKind::kClassifierHead, 0, 0);
  const A* features = run.template kept_at<A>(features_);
  A* dfeatures = run.template kept_at<A>(dfeatures_);
  const auto store = [&](A& to, A value) {
    to = run.micro_batch.first() ? value : to + value;
  };
  run.thread_pool.run(findings_ + shape_.images, [&](int task, int) {
    if (task >= findings_) {  // dfeatures = dlogits x weight
      const int image = task - findings_;
      dfeatures_of(dlogits, image,
                   dfeatures + static_cast<int64_t>(image) * channels_);
      return;
    }
    A bias = 0;
    for (int i = 0; i < shape_.images; ++i)
      bias += dlogits[i * findings_ + task];
    store(bias_gradient_[task], bias);
    for (int c = 0; c < channels_; ++c) {
      A sum = 0;
      for (int i = 0; i < shape_.images; ++i)
        sum += dlogits[i * findings_ + task] *
               features[static_cast<int64_t>(i) * channels_ + c];
      store(weight_gradient_[task * channels_ + c], sum);
    }
  });
  run.micro_batch.written(std::min(weight_end_, bias_end_));
  run.micro_batch.written(std::max(weight_end_, bias_end_));
}

template <class S>
PartSums ClassifierHead<S>::sums(std::byte* region) const {
  LinearAllocator allocator(region);
  return PartSums::in(allocator, std::min(shape_.images, kForwardParts),
                      channels_);
}

template <class S>
PartSums ClassifierHead<S>::backward_map(const Pass<S>& run,
                                         GradientEpilogue<S> epilogue) const {
  const PassTimer timer(
      run.layer_times, PassKind::kClassifierHead, 0,
      2.0 * static_cast<double>(shape_.pixels()) * channels_ * sizeof(S));
  const PartSums sums = this->sums(run.workspace);
  const A* dfeatures = run.template kept_at<A>(dfeatures_);
  const Cut cut{shape_.images, sums.parts};
  const int pixels = shape_.height * shape_.width;
  run.thread_pool.run(cut.parts, [&](int part, int) {
    GradientEpilogue<S> own = epilogue;
    own.first = 0;
    own.last = channels_;
    own.sum = sums.first(part);
    own.product = sums.second(part);
    sums.clear(part);
    for (int64_t i = cut.begin(part); i < cut.end(part); ++i)
      run.kernels.mean_back(dfeatures + i * channels_, i * pixels, pixels, own);
  });
  sums.combine();
  return sums;
}

template class ClassifierHead<float>;
template class ClassifierHead<Bf16>;
template class ClassifierHead<double>;

}  // namespace chexnet
