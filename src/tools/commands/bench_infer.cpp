// bench infer: the forward pass of scoring, on synthetic images.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "bench_network.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/text_format.hpp"
#include "infer_bench.hpp"

namespace chexnet {
namespace {

struct InferOptions : NetworkBenchOptions {
  int passes = 20;
};

void print_text(const InferOptions& options, const Json& json) {
  std::cout << options.model << "  batch " << options.batch << "  "
            << options.size << " px  " << json["precision"].get<std::string>()
            << "  " << fixed(json["images_per_s"], 1) << " images/s  "
            << fixed(json["ms_per_pass"]["median"], 1) << " ms per pass  peak "
            << readable_bytes(json["peak_bytes"].get<double>()) << "\n"
            << json["device"].get<std::string>() << "\n";
}

int bench_infer(const InferOptions& options, Invocation& invocation) {
  const Config config = bench_config(options);
  const RankWorld world = enter_world(config.launch, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  const Device device = choose_device(config.launch, world.comm());
  const auto network = bench_network(options, config, device, world.comm());
  InferBench bench(*network, device, options.batch, options.size);
  const auto ms = bench.run(options.passes);
  const double median = quantile(ms, 0.5);
  Json json = {
      {"model", options.model},
      {"batch", options.batch},
      {"size", options.size},
      {"precision", choice_name(network->options().precision)},
      {"threads", device.threads},
      {"device", device.description},
      {"images_per_s", 1e3 * static_cast<double>(options.batch) / median},
      {"ms_per_pass",
       {{"median", median},
        {"p10", quantile(ms, 0.1)},
        {"p90", quantile(ms, 0.9)}}},
      {"peak_bytes",
       device.cuda != nullptr ? device.cuda->peak_bytes() : peak_rss_bytes()}};
  const LayerReport layers = bench.layers();
  add_layers(layers, "pass", json);
  if (options.json) {
    std::cout << json.dump() << std::endl;
    return 0;
  }
  print_text(options, json);
  std::cout << layer_table(layers, "pass");
  return 0;
}

}  // namespace

void add_bench_infer(CLI::App& bench, Invocation& invocation) {
  auto options = std::make_shared<InferOptions>();
  auto* command = bench.add_subcommand(
      "infer", "the forward pass of scoring, on synthetic images");
  add_network_options(*command, *options);
  command->add_option("--passes", options->passes, "passes to time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return bench_infer(*options, invocation);
    };
  });
}

}  // namespace chexnet
