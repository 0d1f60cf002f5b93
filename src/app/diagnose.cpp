// diagnose CONFIG measures what limits a run, part by part
// (train/stage_rates.cpp); diagnose RUN reads what a run wrote, which costs
// nothing but knows waiting times only: it cannot tell disk from decoding. Both
// end in train/run/diagnosis.cpp, which names the limit.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/table.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/report/metric_lines.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/gradient_communicator.hpp"
#include "chexnet/train/network_options.hpp"
#include "chexnet/train/run/config_agreement.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/diagnosis.hpp"
#include "chexnet/train/run_context.hpp"
#include "chexnet/train/stage_rates.hpp"
#include "chexnet/train/trainer.hpp"

namespace chexnet {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> what, set;
  int steps = 5, ranks = 0;
  bool json = false;
};

void print(const LimitReport& report, const Rows& evidence, Json json,
           bool as_json) {
  if (as_json) {
    json["limit"] = limit_name(report.limit);
    json["reason"] = report.reason;
    json["advice"] = report.advice;
    if (report.workers > 0) json["workers"] = report.workers;
    std::cout << json_text(json) << std::endl;
    return;
  }
  std::cout << aligned(evidence) << "\nlimited by: " << limit_name(report.limit)
            << "\n  " << report.reason << "\nwhat to change:\n";
  for (const auto& text : report.advice) std::cout << "  - " << text << "\n";
  std::cout.flush();
}

void print(const StageMeasurement& measured, bool as_json) {
  const auto& [rates, workers] = measured;
  const auto shown = [](double r) {
    return r > 0 ? fixed(r, 1) + " images/s per rank" : "-";
  };
  print(limit_of(rates),
        {{"as configured (" + counted(workers, "worker") + ")",
          shown(rates.whole)},
         {"reading, no preprocessing", shown(rates.read)},
         {"loading alone", shown(rates.load)},
         {"loading alone, one worker", shown(rates.load_one)},
         {"the same batch again", shown(rates.same_batch)},
         {"  and without the copy", shown(rates.no_copy)},
         {"  and without gradients of others", shown(rates.alone)}},
        {{"workers_now", workers},
         {"images_per_s",
          {{"whole", rates.whole},
           {"read", rates.read},
           {"load", rates.load},
           {"load_one", rates.load_one},
           {"same_batch", rates.same_batch},
           {"no_copy", rates.no_copy},
           {"alone", rates.alone}}}},
        as_json);
}

int measure(const DiagnoseOptions& options, Invocation& invocation) {
  const Config config =
      load_config({options.what.begin(), options.what.end()}, options.set,
                  &invocation.variables, [&options](Config& c) {
                    if (options.ranks > 0) c.launch.ranks = options.ranks;
                  });
  check_run(config);
  RankWorld world = enter_world(config.launch, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  check_same_config(world.comm(), config);
  const Device device = choose_device(config.launch, world.comm());
  const auto comm =
      gradient_communicator(world.take_comm(), device, config.launch);
  const Dataset dataset = load_dataset(config, *comm);
  require_training_images(dataset.splits);
  const auto findings = static_cast<int64_t>(dataset.manifest.finding_count());
  Network network(network_spec(config.model.arch), findings,
                  network_options(config, device, *comm));
  network.parameters().initialize(1);
  const LossWeights weights = loss_weights(
      config.train.class_weights, dataset.manifest, dataset.splits.train);
  const int64_t batch =
      config.train.batch ? *config.train.batch
                         : auto_batch(config, network, *comm,
                                      {.images = static_cast<int64_t>(
                                           dataset.splits.train.rows.size()),
                                       .host_bytes = available_memory_bytes(),
                                       .cuda = device.cuda});
  const RunContext context{config, *comm, device, dataset, network, weights};
  Progress progress(comm->rank() == 0);
  StageRateOptions stages{
      .step = step_options(config, weights),
      .images = std::max(1, static_cast<int>(batch) / comm->size()),
      .rounds = options.steps,
      .show = [&](const auto& what) { progress.show("diagnose: " + what); }};
  const StageMeasurement measured = measure_stages(context, stages);
  progress.clear();
  if (comm->rank() == 0) print(measured, options.json);
  return 0;
}

// A config that is absent is refused as one, anything else as a run.
bool names_run(const std::filesystem::path& what) {
  const bool is_yaml =
      what.extension() == ".yaml" || what.extension() == ".yml";
  return std::filesystem::is_directory(what) ||
         (!is_yaml && !std::filesystem::exists(what));
}

int read_run(const DiagnoseOptions& options) {
  const std::filesystem::path folder = options.what.front();
  const auto path = folder / "metrics.jsonl";
  if (!std::filesystem::exists(path))
    throw CheckpointError(
        "[diagnose] {}: holds no run (no metrics.jsonl). Hint: name a config "
        "file, or a folder like runs/NAME",
        folder.string());
  WaitShares shares;
  double data = 0, allreduce = 0, seconds = 0;
  int64_t images_before = 0, step_before = 0;
  for_each_event(read_text(path), [&](const nlohmann::json& line,
                                      const std::string&) {
    if (line.value("event", "") != "train") return;
    // null where it is not defined
    const auto figure = [&](const char* name) {
      const auto found = line.find(name);
      return found != line.end() && found->is_number() ? found->get<double>()
                                                       : 0.0;
    };
    const auto images = line.value("images", int64_t{0});
    const double rate = figure("images_per_s");
    if (rate > 0 && images > images_before) {
      seconds += static_cast<double>(images - images_before) / rate;
      data += figure("data_wait_s");
      allreduce += figure("allreduce_wait_s");
      shares.stalls += line.value("data_stalls", 0L);
      shares.steps += line.value("step", int64_t{0}) - step_before;
    }
    images_before = images;
    step_before = line.value("step", int64_t{0});
  });
  if (seconds <= 0)
    throw CheckpointError(
        "[diagnose] {} has no train lines. Hint: name a run folder that has "
        "trained",
        path.string());
  shares.data = data / seconds;
  shares.allreduce = allreduce / seconds;
  print(limit_of(shares),
        {{"training time", readable_s(seconds)},
         {"waiting for data", fixed(100 * shares.data, 1) + " %"},
         {"waiting for gradients", fixed(100 * shares.allreduce, 1) + " %"},
         {"stalls", std::to_string(shares.stalls) + " in " +
                        std::to_string(shares.steps) + " steps"}},
        {{"seconds", seconds},
         {"data_wait_fraction", shares.data},
         {"allreduce_wait_fraction", shares.allreduce},
         {"stalls", shares.stalls},
         {"steps", shares.steps}},
        options.json);
  return 0;
}

}  // namespace

void add_diagnose(CLI::App& app, Invocation& invocation) {
  auto* command =
      app.add_subcommand("diagnose",
                         "what limits training: disk, decode, copy, compute or "
                         "network, and what to do");
  auto options = std::make_shared<DiagnoseOptions>();
  command
      ->add_option("what", options->what,
                   "YAML files of a planned run (measured now), or the folder "
                   "of a finished run")
      ->required();
  add_set_option(*command, options->set, "the files");
  command->add_option("--steps", options->steps, "steps of each measurement")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  add_ranks_option(*command, options->ranks);
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return names_run(options->what.front()) ? read_run(*options)
                                              : measure(*options, invocation);
    };
  });
}

}  // namespace chexnet
