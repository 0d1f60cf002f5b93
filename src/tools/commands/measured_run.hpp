// What a command needs to measure a run of a config without starting one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/app/commands.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/rank_world.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// What says which run it is.
struct MeasuredOptions {
  std::vector<std::string> files, set;
  int ranks = 0;  // 0: by the config
};
void add_measured_options(CLI::App& command, MeasuredOptions& options);
// Checked as training's.
Config measured_config(const MeasuredOptions& options, Invocation& invocation);

class MeasuredRun {
 public:
  // Reads the data, makes the network and chooses the batch, on all ranks of
  // `world`, whose communicator it takes. Collective. Errors as training's.
  MeasuredRun(const Config& config, RankWorld& world);
  MeasuredRun(const MeasuredRun&) = delete;
  MeasuredRun& operator=(const MeasuredRun&) = delete;

  const RunContext& context() const { return context_; }
  int64_t batch() const { return batch_; }  // images of a step, all ranks

 private:
  Device device_;
  std::unique_ptr<Communicator> comm_;
  Dataset dataset_;
  Network network_;
  LossWeights weights_;
  RunContext context_;
  int64_t batch_;
};

}  // namespace chexnet
