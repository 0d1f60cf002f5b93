// Shared by the benches of a network: its options, and the table of where the
// time goes.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/layer_report.hpp"

namespace chexnet {

inline constexpr int64_t kBenchFindings = 14;

struct NetworkBenchOptions {
  std::string model = "densenet121", precision = "auto", device = "auto";
  std::vector<std::string> set;  // of `keys` alone
  std::vector<std::string> keys = {"train.engine", "train.deterministic",
                                   "launch.threads"};
  bool json = false;
  int64_t batch = 16, size = 224;
  int ranks = 0;  // as launch.ranks
};

void add_network_options(CLI::App& command, NetworkBenchOptions& options);
// Defaults but for the options. ConfigError: --set of a key that the bench does
// not follow.
Config bench_config(const NetworkBenchOptions& options);
// With random weights. ConfigError: an unknown network, or a precision that the
// device does not have.
std::unique_ptr<Network> bench_network(const NetworkBenchOptions& options,
                                       const Config& config,
                                       const Device& device,
                                       Communicator& comm);

// "" and no fields where no layer was timed.
// Times of a `unit`: "step" or "pass".
std::string layer_table(const LayerReport& report, const std::string& unit);
void add_layers(const LayerReport& report, const std::string& unit, Json& json);

}  // namespace chexnet
