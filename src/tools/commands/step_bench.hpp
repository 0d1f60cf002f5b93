// How fast a training step is, on synthetic images that lie where it computes:
// the whole step, and with ranks the part of communication. Times are of this
// rank, in milliseconds, one for each step after the warm-up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/model/operator_audit.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/layer_report.hpp"
#include "chexnet/train/step.hpp"

namespace chexnet {

struct StepBenchOptions {
  int64_t batch = 16, size = 224;  // images of a rank; pixels
  int steps = 10;
  // Steps between two looks at the clock, each of which waits for device and
  // ranks; above 1 a time is the mean of so many steps.
  int at_once = 1;
  bool resident = false;  // images and labels on the device before the first
  TrainStep::Options step;
};

struct StepBenchTimes {
  static constexpr int kWarmUp = 2;  // steps before the first time, on a CPU

  std::vector<double> step_ms;
  double cpu_s_per_step = 0;  // of all threads, warm-up included
  // From the start of the process to the end of the first step.
  double first_step_s = 0;

  // Of several ranks; empty for one.
  std::vector<double> silent_ms;  // the step without communication
  // All-reduce of all gradients, nobody computing.
  std::vector<double> allreduce_ms;
  // What the latest rank still waited for gradients after backward: early ranks
  // also wait for late ones, so this alone is communication. With the
  // warm-up's.
  std::vector<double> exposed_ms;
  // How much of the all-reduce backward hides, 0..1.
  double hidden_fraction() const;
};

// The references must outlive it. `network` is trained.
class StepBench {
 public:
  StepBench(Network& network, Communicator& comm, const Device& device,
            const StepBenchOptions& options);
  StepBenchTimes run();  // collective
  // Over some further steps of this rank alone.
  LayerReport layers();
  // What a further step of this rank alone asks of ATen.
  OperatorCounts operators();

 private:
  std::optional<StepResult> compute(TrainStep& step);
  int warm_up() const;  // rounds
  void wait_for_device();
  std::vector<LayerRow> operator_rows();
  // Each of `actions` once a round, in turn: [action][round].
  std::vector<std::vector<double>> time_in_turn(
      const std::vector<std::function<void()>>& actions);

  Network& network_;
  Communicator& comm_;
  const Device& device_;
  StepBenchOptions options_;
  at::Tensor images_, labels_;
  TrainStep step_, silent_;
};

}  // namespace chexnet
