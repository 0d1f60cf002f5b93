// BatchNorm as the engine keeps it: statistics belong to a map's channels and
// are shared by every BatchNorm that reads the map; each BatchNorm adds its
// weight and bias.
#pragma once

#include <string>

#include "build.hpp"
#include "parts.hpp"
#include "pass.hpp"

namespace chexnet {

inline constexpr double kNormEpsilon = 1e-5;  // torchvision's

// Of a map's channels, in the network's kept memory: mean, 1 / sqrt(variance +
// epsilon), variance (biased), and the sums that BatchNorms which read a
// channel subtract from its gradient: dx = d - offset - slope * (x - mean).
template <class S>
class ChannelStatistics {
 public:
  using A = Accumulator<S>;
  ChannelStatistics(Build<S>& build, int channels);

  A* mean(const Pass<S>& run) const { return run.template kept_at<A>(mean_); }
  A* inverse(const Pass<S>& run) const {
    return run.template kept_at<A>(inverse_);
  }
  A* variance(const Pass<S>& run) const {
    return run.template kept_at<A>(variance_);
  }
  double* offset(const Pass<S>& run) const {
    return run.template kept_at<double>(offset_);
  }
  double* slope(const Pass<S>& run) const {
    return run.template kept_at<double>(slope_);
  }

  // From sums over `count` pixels a channel, of channels [first, first +
  // sums.channels). Combines parts and, where statistics are shared, ranks.
  void set(const Pass<S>& run, const PartSums& sums, int first,
           double count) const;
  void clear_corrections(const Pass<S>& run) const;
  // Constants of GradientMap for the final gradient of channels [first, first +
  // count), given that every reader has added its corrections: d + b * x + c.
  // Writes a = 1, b and c, each [count].
  void final_gradient(const Pass<S>& run, int first, int count, A* a, A* b,
                      A* c) const;

 private:
  int channels_;
  size_t mean_, inverse_, variance_, offset_, slope_;
};

template <class S>
class Norm {
 public:
  using A = Accumulator<S>;
  Norm(Build<S>& build, const std::string& name, int channels);

  int channels() const { return channels_; }
  A* scale(const Pass<S>& run) const { return run.template kept_at<A>(scale_); }
  A* shift(const Pass<S>& run) const { return run.template kept_at<A>(shift_); }

  // scale and shift from the map's statistics, which are also reported for the
  // running ones, or, for inference, from the running ones.
  void prepare(const Pass<S>& run, const ChannelStatistics<S>& statistics,
               double count) const;
  FeatureMap<S> map(const Pass<S>& run, const S* x, int64_t pitch) const {
    return {x, pitch, channels_, scale(run), shift(run)};
  }

  // From combined sums of dy and dy * (x - mean): gradients of weight and bias,
  // and the corrections of the map's channels.
  void backward_shared(const Pass<S>& run, const PartSums& sums,
                       const ChannelStatistics<S>& statistics,
                       double count) const;
  // The same where this is the map's only reader: constants of GradientMap,
  // each [channels].
  void backward_own(const Pass<S>& run, const PartSums& sums,
                    const ChannelStatistics<S>& statistics, double count, A* a,
                    A* b, A* c) const;

 private:
  void set_gradients(const Pass<S>& run, const PartSums& sums,
                     const A* inverse) const;
  int channels_;
  size_t scale_, shift_;
  A *values_, *gradients_, *running_,
      *batch_statistics_;               // flat buffers of the caller
  int64_t weight_, bias_, statistics_;  // positions in them
};

// Pixels of all ranks when statistics are shared. Every rank has the same
// number.
template <class S>
double pixel_count(const Pass<S>& run, const MapShape& shape) {
  return static_cast<double>(shape.pixels()) *
         (run.sync == nullptr ? 1 : run.sync->size());
}

}  // namespace chexnet
