// The results of steps, on their way from the device to the host. A device
// still computes when the host has launched a step, so a copy of its figures is
// launched after the step and read a step later. On the CPU they are there at
// once.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>

#include "chexnet/core/profiler.hpp"
#include "chexnet/train/host_copy.hpp"

namespace chexnet {

struct StepResult {
  double loss_sum = 0;       // this rank's loss summed over its labeled entries
  double gradient_norm = 0;  // of the mean gradient, before clipping
  bool applied = true;  // false: the gradient was not finite, nothing changed
  double labeled = 0;   // entries of the global batch
  double allreduce_wait_s = 0;  // for gradients; see BucketedReducer::wait_s
};

// One thread.
class StepOutcomes {
 public:
  // Computes on `device`; `profiler` may be null.
  StepOutcomes(at::Device device, Profiler* profiler)
      : device_(device), profiler_(profiler) {}
  // `figures`, of the device: loss, gradient norm, and 1 where nothing was
  // applied, fp64 [3]. `result` holds what the host knows.
  void send(const StepResult& result, const at::Tensor& figures);
  // How many steps were sent and not taken.
  size_t under_way() const { return under_way_.size(); }
  // Of the oldest; waits for the device.
  StepResult take();

 private:
  struct UnderWay {
    StepResult result;
    HostCopy figures;  // 3 doubles
  };
  at::Device device_;
  Profiler* profiler_;
  std::deque<UnderWay> under_way_;
};

}  // namespace chexnet
