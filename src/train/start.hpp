// The state that a run starts with, fresh or of the checkpoint that is resumed.
#pragma once

#include <cstdint>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "chexnet/train/run/train_state.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// SHA-256 of all that scores on the validation split depend on: its images and
// their labels as they are scored, the findings (eval.findings), and the
// measure of the best (checkpoint.best).
std::string validation_sha256(const Config& config, const Dataset& dataset);

// The state of the checkpoint, as far as it holds under this config and on
// these data; CheckpointError when it was trained on another training split.
// Says on rank 0 what a change since then means. Collective.
TrainState start_state(const Config& config, RunFolder& folder,
                       const Dataset& dataset, Communicator& comm);

// The run was complete and this config asks for no more steps.
bool nothing_left(const TrainState& state, const Config& config, int64_t batch,
                  uint64_t images);

// `now`: how sums are ordered in this start. Warns where that differs from the
// checkpoint's.
void set_summation_order(TrainState& state, const TrainingContext& run,
                         const SummationOrder& now);

}  // namespace chexnet
