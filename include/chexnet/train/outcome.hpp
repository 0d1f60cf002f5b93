// The results of a start of a run, and how people and scripts get them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/report/scores_output.hpp"
#include "chexnet/train/run/overlap.hpp"

namespace chexnet {

struct TrainOutcome {
  ExitCode code = ExitCode::kDone;
  std::string run_folder;
  int64_t step = 0;
  double images_per_s = 0;           // over the training loop
  std::optional<Overlap> overlap{};  // none: it made no step
  bool on_gpus = false;
  // The most of any rank: bytes of tensors on its GPU, else its resident set.
  uint64_t peak_bytes = 0;
  // Of eval.splits; empty when stopped or complete before.
  std::vector<SplitScores> results;
  double train_s = 0, evaluate_s = 0;
  // Of run.after_checkpoint, on rank 0; nothing without it.
  std::optional<int64_t> failed_commands{};
  std::string lost = {};      // TrainState's, of a run that is complete
  bool was_complete = false;  // by an earlier start; nothing was done
};

// In the log: speed and memory, a mean of each split, the scores of the test
// split (of the last one without it), and where everything else is. `verbose`:
// all tables of all splits.
void say_outcome(const TrainOutcome& outcome, bool verbose);
// The object of `train` in docs/json.md.
std::string outcome_json(const TrainOutcome& outcome);

}  // namespace chexnet
