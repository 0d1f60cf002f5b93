#include "norm.hpp"

#include <cassert>
#include <cmath>
#include <vector>

#include "chexnet/comm/moments.hpp"

// A channel x is made once and read by many BatchNorms, of which reader r
// computes scale_r * (x - mean) * inverse + bias_r. Its gradient is the sum
// over readers
//
//     dx = sum_r scale_r * (dy_r - mean(dy_r)
//                           - (x - mean) * inverse^2 * mean(dy_r * (x - mean)))
//        = sum_r scale_r * dy_r
//          - offset - slope * (x - mean)
//
// Of the second form each reader adds the first line to the gradient map. To
// offset and slope readers add two numbers per channel; final_gradient applies
// them once.
//
// Invariant: clear_corrections comes before the first reader's backward of a
// step, final_gradient after the last one's. Sums are double; parts are
// combined in order (parts.hpp).
namespace chexnet {

template <class S>
ChannelStatistics<S>::ChannelStatistics(Build<S>& build, int channels)
    : channels_(channels),
      mean_(build.template keep<A>(channels)),
      inverse_(build.template keep<A>(channels)),
      variance_(build.template keep<A>(channels)),
      offset_(build.template keep<double>(channels)),
      slope_(build.template keep<double>(channels)) {}

template <class S>
void ChannelStatistics<S>::set(const Pass<S>& run, const PartSums& sums,
                               int first, double count) const {
  assert(first >= 0 && first + sums.channels <= channels_ && count > 0);
  sums.combine();
  const auto channels = static_cast<size_t>(sums.channels);
  const std::span mean(sums.first(0), channels),
      deviations(sums.second(0), channels);
  if (run.sync != nullptr) count /= run.sync->size();
  for (size_t c = 0; c < channels; ++c) {
    mean[c] /= count;
    deviations[c] = std::max(deviations[c] - count * mean[c] * mean[c], 0.0);
  }
  if (run.sync != nullptr) combine_moments(*run.sync, mean, deviations, count);
  for (size_t c = 0; c < channels; ++c) {
    const double variance = deviations[c] / count;
    const size_t at = static_cast<size_t>(first) + c;
    this->mean(run)[at] = static_cast<A>(mean[c]);
    this->variance(run)[at] = static_cast<A>(variance);
    inverse(run)[at] = static_cast<A>(1 / std::sqrt(variance + kNormEpsilon));
  }
}

template <class S>
void ChannelStatistics<S>::clear_corrections(const Pass<S>& run) const {
  std::fill_n(offset(run), channels_, 0.0);
  std::fill_n(slope(run), channels_, 0.0);
}

template <class S>
void ChannelStatistics<S>::final_gradient(const Pass<S>& run, int first,
                                          int count, A* a, A* b, A* c) const {
  assert(first >= 0 && first + count <= channels_);
  const double *offset = this->offset(run) + first,
               *slope = this->slope(run) + first;
  std::vector<double> shared;
  if (run.sync != nullptr) {
    shared.assign(offset, offset + count);
    shared.insert(shared.end(), slope, slope + count);
    run.sync->all_reduce(shared, ReduceOp::kSum);
    offset = shared.data();
    slope = offset + count;
  }
  for (int i = 0; i < count; ++i) {
    a[i] = 1;
    b[i] = static_cast<A>(-slope[i]);
    c[i] = static_cast<A>(slope[i] * static_cast<double>(mean(run)[first + i]) -
                          offset[i]);
  }
}

template <class S>
Norm<S>::Norm(Build<S>& build, const std::string& name, int channels)
    : channels_(channels),
      scale_(build.template keep<A>(channels)),
      shift_(build.template keep<A>(channels)),
      values_(static_cast<A*>(build.parameters.values)),
      gradients_(static_cast<A*>(build.parameters.gradients)),
      running_(static_cast<A*>(build.parameters.running)),
      batch_statistics_(gradients_ + build.parameters.batch_statistics),
      weight_(build.parameters.parameter(name + ".weight")),
      bias_(build.parameters.parameter(name + ".bias")),
      statistics_(build.parameters.statistics(name)) {}

template <class S>
void Norm<S>::prepare(const Pass<S>& run,
                      const ChannelStatistics<S>& statistics,
                      double count) const {
  const A* running = running_ + statistics_;
  A* reported = batch_statistics_ + statistics_;
  const double share = 1.0 / run.micro_batch.count,
               unbiased = count / std::max(count - 1, 1.0);
  for (int c = 0; c < channels_; ++c) {
    double mean = running[c], inverse = 0;
    if (run.training) {
      mean = statistics.mean(run)[c];
      inverse = statistics.inverse(run)[c];
      const double variance =
          static_cast<double>(statistics.variance(run)[c]) * unbiased;
      const auto report = [&](A& to, double value) {
        to = static_cast<A>(
            (run.micro_batch.first() ? 0.0 : static_cast<double>(to)) +
            share * value);
      };
      report(reported[c], mean);
      report(reported[channels_ + c], variance);
    } else {
      inverse = 1 / std::sqrt(static_cast<double>(running[channels_ + c]) +
                              kNormEpsilon);
    }
    const double scale = static_cast<double>(values_[weight_ + c]) * inverse;
    this->scale(run)[c] = static_cast<A>(scale);
    shift(run)[c] =
        static_cast<A>(static_cast<double>(values_[bias_ + c]) - mean * scale);
  }
}

template <class S>
void Norm<S>::set_gradients(const Pass<S>& run, const PartSums& sums,
                            const A* inverse) const {
  assert(sums.channels == channels_);
  for (int c = 0; c < channels_; ++c) {
    A& bias = gradients_[bias_ + c];
    A& weight = gradients_[weight_ + c];
    const double db = sums.first(0)[c],
                 dw = sums.second(0)[c] * static_cast<double>(inverse[c]);
    bias = static_cast<A>(
        (run.micro_batch.first() ? 0.0 : static_cast<double>(bias)) + db);
    weight = static_cast<A>(
        (run.micro_batch.first() ? 0.0 : static_cast<double>(weight)) + dw);
  }
  run.micro_batch.written(std::min(weight_, bias_) + channels_);
  run.micro_batch.written(std::max(weight_, bias_) + channels_);
}

// dx = scale * (dy - mean(dy) - (x - mean) * inverse^2 * mean(dy * (x -
// mean))), scale = weight * inverse (Ioffe and Szegedy, 2015).
template <class S>
void Norm<S>::backward_shared(const Pass<S>& run, const PartSums& sums,
                              const ChannelStatistics<S>& statistics,
                              double count) const {
  for (int c = 0; c < channels_; ++c) {
    const double scale = static_cast<double>(this->scale(run)[c]) / count,
                 inverse = statistics.inverse(run)[c];
    statistics.offset(run)[c] += scale * sums.first(0)[c];
    statistics.slope(run)[c] += scale * inverse * inverse * sums.second(0)[c];
  }
  set_gradients(run, sums, statistics.inverse(run));
}

template <class S>
void Norm<S>::backward_own(const Pass<S>& run, const PartSums& sums,
                           const ChannelStatistics<S>& statistics, double count,
                           A* a, A* b, A* c) const {
  const double *dy = sums.first(0), *product = sums.second(0);
  std::vector<double> shared;
  if (run.sync != nullptr) {
    shared.assign(dy, dy + ptrdiff_t{2} * channels_);
    run.sync->all_reduce(shared, ReduceOp::kSum);
    dy = shared.data();
    product = dy + channels_;
  }
  for (int i = 0; i < channels_; ++i) {
    const double scale = static_cast<double>(this->scale(run)[i]),
                 inverse = statistics.inverse(run)[i];
    const double slope = scale * inverse * inverse * product[i] / count;
    a[i] = static_cast<A>(scale);
    b[i] = static_cast<A>(-slope);
    c[i] = static_cast<A>(slope * static_cast<double>(statistics.mean(run)[i]) -
                          scale * dy[i] / count);
  }
  set_gradients(run, sums, statistics.inverse(run));
}

template class ChannelStatistics<float>;
template class ChannelStatistics<Bf16>;
template class ChannelStatistics<double>;
template class Norm<float>;
template class Norm<Bf16>;
template class Norm<double>;

}  // namespace chexnet
