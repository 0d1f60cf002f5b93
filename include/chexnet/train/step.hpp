// One optimizer step on this rank's part of the global batch: forward, loss,
// backward with all-reduce of finished buckets, gradient checks, optimizer.
// Everything that every rank must decide alike is derived from reduced values.
#pragma once

#include <ATen/core/Tensor.h>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/model/loss.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/run/loss_scale.hpp"
#include "chexnet/train/optimizer.hpp"

namespace chexnet {

class TrainStep {
 public:
  struct Options {
    TrainConfig train;
    LossWeights weights;
    double bucket_mb = 4;
    GradientCompression compression = GradientCompression::kNone;
    bool communicate = true;  // off only to measure what communication costs
    Profiler* profiler = nullptr;
  };
  struct Result {
    at::Tensor
        loss_sum;  // scalar: this rank's loss summed over its labeled entries
    double gradient_norm = 0;  // of the mean gradient, before clipping
    bool applied = true;  // false: the gradient was not finite, nothing changed
    double allreduce_wait_s = 0;  // for gradients; see BucketedReducer::wait_s
  };
  TrainStep(Network& network, Communicator& comm, Options options);

  // images uint8 [n,1,S,S], labels float [n,K] (NaN = not labeled), both on the
  // host; `labeled` entries in the global batch of all ranks. n is a multiple
  // of train.accumulate. Where it throws nothing was applied and nothing stays
  // set: the next step is as if this one had never begun.
  Result run(const at::Tensor& images, const at::Tensor& labels, double labeled,
             double lr);

  // Other gradient buckets from the next step on; every rank alike.
  void set_bucket_mb(double bucket_mb);

  Optimizer& optimizer() { return optimizer_; }
  LossScale& loss_scale() { return scale_; }
  BucketedReducer& reducer() { return reducer_; }

 private:
  // Scales, checks and clips the reduced gradients, and moves the parameters.
  void apply(Result& result, double lr);
  Network& network_;
  Communicator& comm_;
  Options options_;
  BinaryCrossEntropy loss_;
  Optimizer optimizer_;
  BucketedReducer reducer_;
  LossScale scale_;
};

// As the config says; buckets that are to be tuned start with the size of the
// default.
TrainStep::Options step_options(const Config& config,
                                const LossWeights& weights,
                                Profiler* profiler = nullptr);

}  // namespace chexnet
