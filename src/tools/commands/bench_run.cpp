// bench run: what limits a run of these files, measured part by part
// (train/stage_rates.cpp); train/run/diagnosis.cpp names the limit.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/limit_output.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/report/overlap_figure.hpp"
#include "chexnet/train/run/diagnosis.hpp"
#include "chexnet/train/stage_rates.hpp"
#include "measured_run.hpp"

namespace chexnet {
namespace {

struct BenchRunOptions {
  MeasuredOptions run;
  std::string svg;
  int steps = 5;
  bool json = false;
};

void print(const StageMeasurement& measured, bool as_json) {
  const StageRates& rates = measured.rates;
  const auto shown = [](double r) {
    return r > 0 ? fixed(r, 1) + " images/s per rank" : "-";
  };
  const LimitOutput output{
      .report = limit_of(rates),
      .evidence = {{"as configured (" + counted(rates.workers, "worker") + ")",
                    shown(rates.whole)},
                   {"reading, no preprocessing", shown(rates.read)},
                   {"loading alone", shown(rates.load)},
                   {"loading alone, one worker", shown(rates.load_one)},
                   {"loading, nothing augmented", shown(rates.load_plain)},
                   {"the same batch again", shown(rates.same_batch)},
                   {"  and without the copy", shown(rates.no_copy)},
                   {"  and without gradients of others", shown(rates.alone)},
                   {"noise (quartiles of a step's time)",
                    fixed(100 * rates.noise, 1) + " %"}},
      .json = {{"workers_now", rates.workers},
               {"noise", rates.noise},
               {"images_per_s",
                {{"whole", rates.whole},
                 {"read", rates.read},
                 {"load", rates.load},
                 {"load_plain", rates.load_plain},
                 {"load_one", rates.load_one},
                 {"same_batch", rates.same_batch},
                 {"no_copy", rates.no_copy},
                 {"alone", rates.alone}}}}};
  std::cout << (as_json ? json_text(output.whole_json()) + "\n" : output.text())
            << std::flush;
}

OverlapTimes overlap_of(const StageRates& rates, int64_t images) {
  const double ms = 1e3 * static_cast<double>(images);
  const double loading = ms / rates.load, step = ms / rates.whole;
  const double waited = std::clamp(step - ms / rates.same_batch, 0.0, loading);
  return {.loading = loading, .computing = step - waited, .step = step};
}

int bench_run(const BenchRunOptions& options, Invocation& invocation) {
  const Config config = measured_config(options.run, invocation);
  prepare_own_output(options.svg, "<svg");
  RankWorld world = enter_world(config.launch, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  const MeasuredRun run(config, world);
  const RunContext& context = run.context();
  const Communicator& comm = context.comm;
  Progress progress(comm.rank() == 0);
  StageRateOptions stages{
      .step = step_options(config, context.weights),
      .images = static_cast<int>(run.batch()) / comm.size(),
      .rounds = options.steps,
      .show = [&](const auto& what) { progress.show("bench run: " + what); }};
  const StageMeasurement measured = measure_stages(context, stages);
  progress.clear();
  if (measured.damaged > 0)
    log_warning("[bench] rank " + std::to_string(comm.rank()) + " met " +
                counted(measured.damaged, "damaged image") +
                ": training does with them what data.corrupt says. Hint: "
                "chexnet-train inspect CONFIG names them");
  if (comm.rank() != 0) return 0;
  if (!options.svg.empty())
    write_in_time(config.launch.timeout_s, options.svg,
                  svg_overlap(overlap_of(measured.rates, stages.images)),
                  "--svg");
  print(measured, options.json);
  return 0;
}

}  // namespace

void add_bench_run(CLI::App& bench, Invocation& invocation) {
  auto* command =
      bench.add_subcommand("run",
                           "what limits training of a config: disk, network, "
                           "decode, augmentation, copy, compute or "
                           "communication, and what to do");
  auto options = std::make_shared<BenchRunOptions>();
  add_measured_options(*command, options->run);
  command->add_option("--steps", options->steps, "steps of each measurement")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--svg", options->svg,
                   "draw a step with and without pipelining into this SVG file")
      ->check(in_file_system());
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return bench_run(*options, invocation);
    };
  });
}

}  // namespace chexnet
