// The whole of a training run on one rank: set-up from config, the loop over
// steps with evaluations and checkpoints at epoch ends, the final evaluation
// and report.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/outcome.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "chexnet/train/run/timeline_recorder.hpp"

namespace chexnet {

struct TrainRequest {
  Resume resume = Resume::kNo;
  std::string resume_command;  // for a post-mortem
  TimelineRecorder::Request timeline;
  // Called on rank 0 once the run folder belongs to this start.
  std::function<void(const std::filesystem::path& folder)> folder_taken;
};

// Collective: call on every rank with the same arguments.
TrainOutcome train(const Config& config, const TrainRequest& request,
                   std::unique_ptr<Communicator> host);

}  // namespace chexnet
