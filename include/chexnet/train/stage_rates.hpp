// The rates that tell what limits a run (train/run/diagnosis.hpp), measured on
// this machine: the run as configured, and the same with one part after another
// left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "chexnet/train/run/diagnosis.hpp"
#include "chexnet/train/run_context.hpp"
#include "chexnet/train/step.hpp"

namespace chexnet {

struct StageRateOptions {
  TrainStep::Options step;  // as the run would compute
  int images = 1;           // of a batch, on each rank
  int rounds = 5;           // of each measurement, after one to warm up
  // Hears what is measured next; may be empty.
  std::function<void(const std::string& what)> show;
};

struct StageMeasurement {
  StageRates rates;
  int64_t damaged = 0;  // images that could not be decoded, of this rank's
};

// Trains at rate 0, so running statistics and the optimizer's state move and
// weights do not. Collective: ranks compute in step; the rates are this rank's,
// of computing those of the slowest. The training split is not empty.
StageMeasurement measure_stages(const RunContext& run,
                                const StageRateOptions& options);

}  // namespace chexnet
