// One optimizer step on this rank's part of the global batch: forward, loss,
// backward with all-reduce of finished buckets, gradient checks, optimizer.
// Everything that every rank must decide alike is derived from reduced values.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/model/loss.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/gradient_control.hpp"
#include "chexnet/train/optimizer.hpp"
#include "chexnet/train/run/loss_scale.hpp"
#include "chexnet/train/step_outcomes.hpp"
#include "chexnet/train/weight_average.hpp"

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

    Options without_communication() const {
      Options options = *this;
      options.communicate = false;
      return options;
    }
  };
  TrainStep(Network& network, Communicator& comm, Options options);

  // images uint8 [n,1,S,S], labels float [n,K] (NaN = not labeled), on host or
  // device; `labeled` entries in the global batch of all ranks; sample_weights
  // [n,1] of the images' loss, or undefined. n is a multiple of
  // train.accumulate. Where it throws nothing was applied and nothing stays
  // set: the next step is as if this one had never begun.
  //
  // A CPU returns what became of this step. On a device it is launched, and
  // returned is what became of the step before; nothing after the first.
  std::optional<StepResult> run(const at::Tensor& images,
                                const at::Tensor& labels, double labeled,
                                double lr,
                                const at::Tensor& sample_weights = {});
  // What became of a step that was launched, in the order of steps; nothing
  // when all are known. Waits for the device.
  std::optional<StepResult> finish();

  // Other gradient buckets from the next step on; every rank alike.
  void set_bucket_mb(double bucket_mb);

  Optimizer& optimizer() { return optimizer_; }
  WeightAverage& average() { return average_; }
  bool scales_dynamically() const { return control_.is_dynamic(); }
  // Waits for the device.
  LossScale loss_scale() const { return control_.loss_scale(); }
  // Of a checkpoint. Nothing where the scale is fixed.
  void set_loss_scale(const LossScale& scale);
  BucketedReducer& reducer() { return reducer_; }

 private:
  // Returns the loss, summed. The flat gradients are those of all ranks then.
  at::Tensor compute_gradients(const at::Tensor& images,
                               const at::Tensor& labels, double labeled,
                               const at::Tensor& weights);
  StepResult take();
  // Of the oldest step under way.
  void wait_for_gradients();
  // Scales, checks and clips the reduced gradients, and moves the parameters.
  void apply(double lr);
  Network& network_;
  Communicator& comm_;
  Options options_;
  BinaryCrossEntropy loss_;
  Optimizer optimizer_;
  WeightAverage average_;
  BucketedReducer reducer_;
  GradientControl control_;
  StepOutcomes outcomes_;
  std::optional<double> waited_s_;  // for gradients, if it has been waited
};

// As the config says; buckets that are to be tuned start with the size of the
// default.
TrainStep::Options step_options(const Config& config,
                                const LossWeights& weights,
                                Profiler* profiler = nullptr);

}  // namespace chexnet
