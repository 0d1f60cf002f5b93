// What a run computes with, from its config: device, data, batch, weights.
// Each is checked before hours are spent on it.
#pragma once

#include <optional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/run_decisions.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "chexnet/train/run/stop_request.hpp"
#include "chexnet/train/run/train_state.hpp"
#include "chexnet/train/run_context.hpp"
#include "chexnet/train/step.hpp"

namespace chexnet {

// `profiler` records a GPU's work, too; a self-test decides whether a GPU
// computes by our kernels. Collective; DeviceError of self_test_once.
void set_up_gpu(Device& device, const Config& config, Communicator& comm,
                Profiler& profiler);

// Splits and images, which this config can read; nothing where the ranks are
// asked to stop. Collective. OutageError: data that the run read before are
// gone now.
std::optional<Dataset> load_data(const Config& config, const RunFolder& folder,
                                 Communicator& comm, StopRequest& stop);
// ConfigError, DataError: packs, crops or the pipeline do not suit the config.
void check_inputs(const Config& config, const Dataset& dataset,
                  Communicator& comm);

// Collective. ConfigError of choose_batch.
RunDecisions decide(const RunContext& run, const RunFolder& folder);

// The weights that a run of the config begins with: of model.weights, or drawn.
// Returns where they came from, on rank 0. Collective.
std::string begin_weights(const RunContext& run);
// Weights, optimizer and loss scale before the first step, and in `state` the
// order of this start's sums. Returns what computes. Collective.
std::string take_state(const TrainingContext& run, TrainStep& step,
                       TrainState& state);

}  // namespace chexnet
