// The whole of a training run on one rank: set-up from config, the loop over
// steps with evaluations and checkpoints at epoch ends, the final evaluation
// and report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/report/scores_output.hpp"
#include "chexnet/train/run/run_folder.hpp"

namespace chexnet {

struct TrainOutcome {
  ExitCode code = ExitCode::kDone;
  std::string run_folder;
  int64_t step = 0;
  double images_per_s = 0;  // over the training loop
  bool on_gpus = false;
  // The most of any rank: bytes of tensors on its GPU, else its resident set.
  uint64_t peak_bytes = 0;
  std::vector<SplitScores>
      results;  // of eval.splits; empty when stopped or complete before
  double train_s = 0, evaluate_s = 0;
  // Of run.after_checkpoint, on rank 0; nothing without it.
  std::optional<int64_t> failed_commands{};
  bool was_complete = false;  // by an earlier start; nothing was done
};

struct TrainRequest {
  Resume resume = Resume::kNo;
  std::string resume_command;  // for a post-mortem
  std::string timeline;        // file for the spans of all ranks; empty: none
  // Called on rank 0 once the run folder belongs to this start.
  std::function<void(const std::filesystem::path& folder)> folder_taken;
};

// ConfigError where `batch` images cannot be shared by ranks x
// train.accumulate.
void check_batch(const TrainConfig& config, int64_t batch, int ranks);

// Collective: call on every rank with the same arguments.
TrainOutcome train(const Config& config, const TrainRequest& request,
                   std::unique_ptr<Communicator> host);

}  // namespace chexnet
