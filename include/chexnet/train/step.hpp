// One optimizer step on this rank's part of the global batch: forward, loss,
// backward with all-reduce of finished buckets, gradient checks, optimizer.
// Everything that every rank must decide alike is derived from reduced values.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/model/loss.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/gradient_control.hpp"
#include "chexnet/train/optimizer.hpp"
#include "chexnet/train/run/loss_scale.hpp"
#include "chexnet/train/step_outcomes.hpp"
#include "chexnet/train/weight_average.hpp"

namespace chexnet {

class RecordedSteps;

class TrainStep {
 public:
  struct Options {
    TrainConfig train;
    LossWeights weights;
    double bucket_mb = 4;
    GradientCompression compression = GradientCompression::kNone;
    bool communicate = true;  // off only to measure what communication costs
    FrozenPart late = FrozenPart::kNone;  // what freeze() and thaw() are about
    Profiler* profiler = nullptr;

    Options without_communication() const {
      Options options = *this;
      options.communicate = false;
      return options;
    }
  };
  TrainStep(Network& network, Communicator& comm, Options options);
  ~TrainStep();

  // images uint8 [n,1,S,S], labels float [n,K] (NaN = not labeled), on host or
  // device; `labeled` entries in the global batch of all ranks; sample_weights
  // [n,1] of the images' loss, or undefined. n is a multiple of
  // train.accumulate. Where it throws no weight has changed: the next step is
  // as if this one had never begun.
  //
  // On a CPU, returns the result of this step. On a device the step is only
  // launched: returns the result of the step before; nothing for the first.
  std::optional<StepResult> run(const at::Tensor& images,
                                const at::Tensor& labels, double labeled,
                                double lr,
                                const at::Tensor& sample_weights = {});
  // The result of the oldest launched step; nothing when all are known. Waits
  // for the device.
  std::optional<StepResult> finish();

  // Whether the parts in Options::late are frozen from the next step on; at
  // first they are not. Every rank alike, while no step is under way and before
  // record(). What thaws begins as it was, with an optimizer's state of 0.
  void freeze();
  void thaw();
  // Other gradient buckets from the next step on; every rank alike. Not after
  // record().
  void set_bucket_mb(double bucket_mb);
  // From now on the device `cuda` gets a step as one launch, unless
  // train.record_step is off; every rank alike. DeviceError where it is on and
  // a step cannot be recorded.
  void record(CudaLibrary& cuda);
  // Gives the memory of recordings back; steps are launched kernel by kernel
  // from now on. Steps under way are computed as they were launched.
  void end_recordings();

  Optimizer& optimizer() { return optimizer_; }
  WeightAverage& average() { return average_; }
  bool scales_dynamically() const { return control_.is_dynamic(); }
  // Waits for the device.
  LossScale loss_scale() const { return control_.loss_scale(); }
  // Of a checkpoint. Nothing where the scale is fixed.
  void set_loss_scale(const LossScale& scale);
  BucketedReducer& reducer() { return reducer_; }

 private:
  void set_late(bool waits);
  struct Inputs {
    at::Tensor images, labels, sample_weights;
  };
  // The functions below take no numbers from the host but those of the config:
  // a recording would repeat them. Returns loss, gradient norm, and 1 where the
  // gradient is not finite, fp64 [3].
  at::Tensor compute(const Inputs& inputs);
  // Returns the loss, summed. The flat gradients are those of all ranks then.
  at::Tensor compute_gradients(const Inputs& inputs);
  StepResult take();
  // Of the oldest step under way.
  void wait_for_gradients();
  void settle();  // the same, if there is one
  // Scales, checks and clips the reduced gradients, and moves the parameters.
  void apply();
  std::vector<at::Tensor> state() const;  // all that a step changes
  Network& network_;
  Communicator& comm_;
  Options options_;
  BatchLoss loss_;
  at::Tensor entries_;  // of the global batch that are labeled, at least 1
  FrozenPart never_;    // trained
  Optimizer optimizer_;
  WeightAverage average_;
  BucketedReducer reducer_;
  GradientControl control_;
  StepOutcomes outcomes_;
  std::optional<double> waited_s_;  // for gradients, if it has been waited
  std::unique_ptr<RecordedSteps> recorded_;
};

// As the config says; buckets that are to be tuned start with the size of the
// default.
TrainStep::Options step_options(const Config& config,
                                const LossWeights& weights,
                                Profiler* profiler = nullptr);

}  // namespace chexnet
