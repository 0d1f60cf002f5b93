// bench step: forward, loss, backward and optimizer on synthetic images.
// tools/commands/step_bench.hpp says what is measured, and how; here are
// options and the two ways to print it. Layers are measured last and by rank 0
// alone, when the other ranks have gone: nobody waits for it then.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "bench_network.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/gradient_communicator.hpp"
#include "chexnet/train/precision.hpp"
#include "step_bench.hpp"

namespace chexnet {
namespace {

struct StepOptions : NetworkBenchOptions {
  int steps = 10, at_once = 1;
  bool resident = false;
};

Json operators_json(const OperatorCounts& counts) {
  return {{"calls", counts.operators},
          {"views", counts.views},
          {"dispatched", counts.dispatched},
          {"allocations", counts.allocations},
          {"allocated_bytes", counts.allocated_bytes},
          {"host_reads", counts.host_reads},
          {"convolution_operands", counts.convolution_operands},
          {"unaligned_operands", counts.unaligned_operands},
          {"strided_operands", counts.strided_operands},
          {"concatenations", counts.concatenations},
          {"narrow_concatenations", counts.narrow_concatenations}};
}

// What was measured, and on what.
struct MeasuredStep {
  StepBenchTimes times;
  LayerReport layers;
  OperatorCounts operators;
  const Device& device;
  std::string precision, engine;
  int ranks;
  uint64_t peak_bytes;
};

// The object of docs/json.md.
Json json_of(const StepOptions& options, const MeasuredStep& measured) {
  const StepBenchTimes& times = measured.times;
  const Device& device = measured.device;
  Json json;
  if (measured.ranks > 1) {
    json["ms_per_step_without_communication"] = quantile(times.silent_ms, 0.5);
    json["ms_allreduce_alone"] = quantile(times.allreduce_ms, 0.5);
    json["ms_allreduce_exposed"] = quantile(times.exposed_ms, 0.5);
    json["hidden_fraction"] = times.hidden_fraction();
  }
  const double median = quantile(times.step_ms, 0.5);
  json["model"] = options.model;
  json["batch"] = options.batch;
  json["size"] = options.size;
  json["precision"] = measured.precision;
  json["threads"] = device.threads;
  json["device"] = device.description;
  json["ranks"] = measured.ranks;
  json["images_per_s"] =
      1e3 * static_cast<double>(options.batch * measured.ranks) / median;
  json["ms_per_step"] = {{"median", median},
                         {"p10", quantile(times.step_ms, 0.1)},
                         {"p90", quantile(times.step_ms, 0.9)}};
  json["peak_bytes"] = measured.peak_bytes;
  json["first_step_s"] = times.first_step_s;
  json["cpu_s_per_step"] = times.cpu_s_per_step;
  json["engine"] = measured.engine;
  json["operators"] = operators_json(measured.operators);
  add_layers(measured.layers, "step", json);
  return json;
}

void print_text(const StepOptions& options, const Json& json) {
  std::cout << options.model << "  batch " << options.batch << " x "
            << counted(json["ranks"], "rank") << "  " << options.size << " px  "
            << json["precision"].get<std::string>() << "  "
            << fixed(json["images_per_s"], 1) << " images/s  "
            << fixed(json["ms_per_step"]["median"], 1) << " ms per step  "
            << fixed(json["cpu_s_per_step"], 2) << " CPU s per step  peak "
            << readable_bytes(json["peak_bytes"].get<double>()) << "\n"
            << json["engine"].get<std::string>() << "; "
            << json["device"].get<std::string>() << "\n";
  if (json.contains("hidden_fraction"))
    std::cout << "all-reduce alone " << fixed(json["ms_allreduce_alone"], 1)
              << " ms, step without communication "
              << fixed(json["ms_per_step_without_communication"], 1)
              << " ms, hidden fraction "
              << fixed(100 * json["hidden_fraction"].get<double>(), 0)
              << " %\n";
}

int bench_step(const StepOptions& options, Invocation& invocation) {
  const Config config = bench_config(options);
  RankWorld world = enter_world(config.launch, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  const Device device = choose_device(config.launch, world.comm());
  const auto comm =
      gradient_communicator(world.take_comm(), device, config.launch);
  const auto network_owner = bench_network(options, config, device, *comm);
  Network& network = *network_owner;
  const LossWeights weights{std::vector<double>(kBenchFindings, 1.0),
                            std::vector<double>(kBenchFindings, 1.0)};
  TrainConfig training;
  training.record_step = config.train.record_step;

  StepBench bench(
      network, *comm, device,
      {.batch = options.batch,
       .size = options.size,
       .steps = options.steps,
       .at_once = options.at_once,
       .resident = options.resident,
       .step = {training, weights,
                // Nothing is tried out here.
                config.launch.bucket_mb.value_or(*LaunchConfig{}.bucket_mb),
                config.launch.gradient_compression}});
  MeasuredStep measured{bench.run(),
                        {},
                        {},
                        device,
                        choice_name(network.options().precision),
                        network.description(options.batch, options.size),
                        comm->size(),
                        0};
  if (comm->rank() != 0) return 0;
  // Of the steps alone: what follows takes more memory.
  measured.peak_bytes =
      device.cuda != nullptr ? device.cuda->peak_bytes() : peak_rss_bytes();
  measured.layers = bench.layers();
  measured.operators = bench.operators();
  const auto json = json_of(options, measured);
  if (options.json) {
    std::cout << json.dump() << std::endl;
    return 0;
  }
  print_text(options, json);
  if (!measured.layers.rows.empty())
    std::cout << layer_table(measured.layers, "step");
  return 0;
}

}  // namespace

void add_bench_step(CLI::App& bench, Invocation& invocation) {
  auto step = std::make_shared<StepOptions>();
  step->ranks = 1;
  step->keys.insert(
      step->keys.end(),
      {"launch.gradient_compression", "launch.bucket_mb", "model.memory",
       "model.freeze_until", "train.record_step"});
  auto* step_command =
      bench.add_subcommand("step",
                           "forward, loss, backward and optimizer on synthetic "
                           "images; with ranks also the cost of communication");
  add_network_options(*step_command, *step);
  step_command->add_option("--steps", step->steps, "steps to time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  step_command
      ->add_option("--at-once", step->at_once,
                   "steps between two looks at the clock, which wait for the "
                   "device")
      ->check(CLI::Range(1, 100000));
  step_command->add_flag("--resident", step->resident,
                         "images are on the device before the first step");
  step_command->add_option("--ranks", step->ranks, "ranks to start")
      ->check(CLI::Range(1, 100000));
  step_command->callback([&invocation, step] {
    invocation.run = [&invocation, step] {
      return bench_step(*step, invocation);
    };
  });
}

}  // namespace chexnet
