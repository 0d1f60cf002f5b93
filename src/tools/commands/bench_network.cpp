#include "bench_network.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/model/engine/network_spec.hpp"
#include "chexnet/train/precision.hpp"

namespace chexnet {
namespace {

std::string right(const std::string& text, size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

// A figure with its percentage of what the machine can do.
std::string of_ceiling(double value, double ceiling) {
  if (value == 0) return "-";
  if (ceiling == 0) return fixed(value, 1);
  return fixed(value, 1) + " (" + fixed(100 * value / ceiling, 0) + " %)";
}

}  // namespace

void add_network_options(CLI::App& command, NetworkBenchOptions& options) {
  command.add_option("--model", options.model, "network")
      ->capture_default_str();
  command.add_option("--batch", options.batch, "images per rank")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_option("--size", options.size, "pixels")
      ->check(CLI::Range(32, 4096))
      ->capture_default_str();
  command.add_option("--precision", options.precision, "as train.precision")
      ->check(CLI::IsMember(names_or_auto<Precision>()))
      ->capture_default_str();
  add_set_option(command, options.set,
                 listed(options.keys, options.keys.size()));
  add_device_option(command, options.device);
  command.add_flag("--json", options.json,
                   "one JSON object on stdout (docs/json.md)");
}

Config bench_config(const NetworkBenchOptions& options) {
  Config config = load_config({}, options.set, nullptr, [&options](Config& c) {
    c.train.precision = find_choice<Precision>(options.precision);
    c.launch.ranks = options.ranks;
    c.launch.device = find_choice<DeviceKind>(options.device);
  });
  for (const auto& item : options.set) {
    const std::string key = item.substr(0, item.find('='));
    if (std::ranges::count(options.keys, key) == 0)
      throw ConfigError(
          "[bench] --set {}: this bench does not follow it. Hint: {}", key,
          listed(options.keys, options.keys.size()));
  }
  return config;
}

std::unique_ptr<Network> bench_network(const NetworkBenchOptions& options,
                                       const Config& config,
                                       const Device& device,
                                       Communicator& comm) {
  auto network =
      std::make_unique<Network>(network_spec(options.model), kBenchFindings,
                                network_options(config, device, comm));
  network->parameters().initialize(1);
  return network;
}

std::string layer_table(const LayerReport& report, const std::string& unit) {
  if (report.rows.empty()) return "";
  const Ceilings& ceilings = report.ceilings;
  Rows rows = {
      {"by kind of layer",
       "ms per " + unit + "   GFLOP/s (of FMA peak)   GB/s (of copy)"}};
  for (const auto& row : report.rows)
    rows.emplace_back(
        row.layers,
        right(fixed(row.ms_per_step, 1), 9) +
            right(of_ceiling(row.gflop_per_s, ceilings.gflops), 24) +
            right(of_ceiling(row.gb_per_s, ceilings.gb_per_s), 17));
  if (ceilings.gflops > 0)
    rows.emplace_back("measured ceilings",
                      "FMA " + fixed(ceilings.gflops, 0) + " GFLOP/s, copy " +
                          fixed(ceilings.gb_per_s, 1) + " GB/s");
  return aligned(rows) + "\n";
}

void add_layers(const LayerReport& report, const std::string& unit,
                Json& json) {
  if (report.rows.empty()) return;
  json["layers"] = Json::array();
  for (const auto& row : report.rows)
    json["layers"].push_back({{"layers", row.layers},
                              {"ms_per_" + unit, row.ms_per_step},
                              {"gflop_per_s", row.gflop_per_s},
                              {"gb_per_s", row.gb_per_s}});
  if (report.ceilings.gflops > 0)
    json["ceilings"] = {{"fma_gflop_per_s", report.ceilings.gflops},
                        {"copy_gb_per_s", report.ceilings.gb_per_s}};
}

}  // namespace chexnet
