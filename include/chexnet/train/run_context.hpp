// What the parts of a run share, by reference: its maker keeps all of it alive.
#pragma once

#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/model/loss.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/run_decisions.hpp"
#include "chexnet/train/run/run_folder.hpp"

namespace chexnet {

// Enough to compute with: one network on one data set, on the ranks of `comm`.
struct RunContext {
  const Config& config;
  Communicator& comm;
  const Device& device;
  const Dataset& dataset;
  Network& network;
  const LossWeights& weights;
  // An ensemble's further members: scores and heat maps are means over all.
  std::vector<Network*> others = {};

  std::vector<Network*> networks() const {
    std::vector<Network*> all = {&network};
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }
};

// A run that trains, from the moment its batch is known.
struct TrainingContext : RunContext {
  const RunDecisions& decisions;
  RunFolder& folder;
  Profiler& profiler;
};

}  // namespace chexnet
