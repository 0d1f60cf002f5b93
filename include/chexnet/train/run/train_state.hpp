// Everything a resume needs besides tensors; state.json of a checkpoint.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "chexnet/report/resume_change.hpp"
#include "chexnet/train/run/loss_scale.hpp"
#include "chexnet/train/run/schedule.hpp"

namespace chexnet {

// What changes the order of floating-point sums. A resume under another value
// says that bitwise equality is lost.
struct SummationOrder {
  int64_t ranks = 1, threads = 1;
  std::string gradient_compression = {}, versions = {};
  double bucket_mb = 0;  // 0 = not yet chosen (launch.bucket_mb: auto)
  int64_t accumulate = 1;
};

// Steps since the last `train` line of metrics.jsonl, so that a resume's next
// line is that of a run without a stop.
struct UnloggedSteps {
  int64_t steps = 0, skipped = 0;
  double labeled = 0, gradient_norm = 0;  // of all ranks; of the last step
  std::vector<double> loss;               // sum of each rank
};

struct TrainState {
  int64_t step = 0;
  uint64_t position = 0;  // in the training order; = step x global batch
  int64_t epoch = 0;      // complete ones
  Plateau plateau;
  LossScale loss_scale;
  double best = std::numeric_limits<double>::quiet_NaN();  // of checkpoint.best
  int64_t best_step = -1;
  int64_t best_epoch = 0;
  int64_t epochs_without_best = 0;  // at the last evaluation
  // The split that the lines above were measured on.
  std::string validation_sha256;
  int64_t rung = 0;  // of train.rungs: the last that it went through
  std::string lost;  // why it ended at that rung; empty: it did not
  // The weights of this step are still to be scored.
  bool evaluation_due = false;
  bool complete = false;  // also scored on eval.splits: nothing is left to do
  UnloggedSteps unlogged;
  SummationOrder order;
  // Of the first weights: a file and its SHA-256, or a seed.
  std::string origin;
  // Splits decoded before training, so not again (split_check.hpp).
  std::string looked_at;
  std::string config;                 // resolved YAML
  std::vector<ResumeChange> changes;  // of all resumes so far

  // Best checkpoint, plateau and early stop start afresh; a rate that was
  // lowered stays so.
  void forget_validation();
  std::string to_json() const;
  static TrainState from_json(const std::string& text,
                              const std::string& origin);  // CheckpointError
};

}  // namespace chexnet
