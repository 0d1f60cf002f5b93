// status: where a run stands and what limits it, seen from any machine that
// sees its folder. It reads files and asks nobody, so it works while the ranks
// run, hang or are gone. A run records waiting times, which cannot tell disk
// from decoding; `bench run` measures that.
#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/limit_output.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/report/openmetrics.hpp"
#include "chexnet/report/run_comparison.hpp"

namespace chexnet {
namespace {

struct StatusOptions {
  std::vector<std::string> folders;
  bool json = false, openmetrics = false;
};

// A run that cannot be read, in a folder of many, hides no other one.
std::vector<RunSummary> summaries(const std::vector<std::string>& folders) {
  std::vector<RunSummary> runs;
  std::set<std::filesystem::path> seen;
  std::exception_ptr problem;
  for (const auto& folder : folders)
    for (const auto& path : find_runs(folder)) {
      if (!is_new_run(path, seen)) continue;
      try {
        const StorageWait reading(timeout_of_start({}),
                                  "reading " + path.string());
        runs.push_back(summarize_run(path));
      } catch (const Error& e) {
        if (path == folder) throw;
        log_warning(std::string(e.what()) + "; this run is left out");
        problem = std::current_exception();
      }
    }
  if (runs.empty() && problem) std::rethrow_exception(problem);
  return runs;
}

// None of a run that has not trained.
std::optional<LimitOutput> limit_of_run(const RunSummary& run) {
  const RunWaits& waits = run.waits;
  if (waits.seconds <= 0) return std::nullopt;
  const WaitFractions waiting{.data = waits.data_s / waits.seconds,
                              .allreduce = waits.allreduce_s / waits.seconds,
                              .stalls = waits.stalls,
                              .steps = waits.steps,
                              .slowest_rank = run.slowest_rank.value_or(0),
                              .slowest_ratio = run.slowest_ratio.value_or(1)};
  return LimitOutput{
      .report = limit_of(waiting),
      .evidence = {{"time of steps", readable_s(waits.seconds)},
                   {"waiting for data, mean of ranks",
                    fixed(100 * waiting.data, 1) + " %"},
                   {"waiting for gradients, mean of ranks",
                    fixed(100 * waiting.allreduce, 1) + " %"},
                   {"stalls", std::to_string(waiting.stalls) + " in " +
                                  counted(waiting.steps, "step")}},
      .json = {{"seconds", waits.seconds},
               {"data_wait_fraction", waiting.data},
               {"allreduce_wait_fraction", waiting.allreduce},
               {"stalls", waiting.stalls},
               {"steps", waiting.steps}}};
}

std::string status_json(const RunSummary& run) {
  Json json = Json::parse(summary_json(run));
  const auto limit = limit_of_run(run);
  json["limit"] = limit ? limit->whole_json() : Json();
  return json_text(json);
}

std::string status_text(const RunSummary& run) {
  const auto limit = limit_of_run(run);
  return summary_text(run) + (limit ? "\n\n" + limit->text() : "\n");
}

int run(const StatusOptions& options) {
  const auto runs = summaries(options.folders);
  if (options.openmetrics) {
    std::cout << openmetrics_text(runs) << std::flush;
  } else if (options.json) {
    std::cout << "[";
    for (size_t i = 0; i < runs.size(); ++i)
      std::cout << (i > 0 ? ",\n" : "") << status_json(runs[i]);
    std::cout << "]" << std::endl;
  } else if (runs.size() == 1) {
    std::cout << status_text(runs.front()) << std::flush;
  } else {
    std::cout << comparison_text(runs) << std::flush;
  }
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "status", "step, speed, time left and limit of a run; compares several");
  auto options = std::make_shared<StatusOptions>();
  command
      ->add_option("folders", options->folders,
                   "run folders, or folders of runs")
      ->check(in_file_system())
      ->required();
  auto* json = command->add_flag("--json", options->json,
                                 "a JSON array on stdout (docs/json.md)");
  command
      ->add_flag("--openmetrics", options->openmetrics,
                 "gauges for Prometheus on stdout (docs/monitoring.md)")
      ->excludes(json);
  command->callback([&invocation, options] {
    invocation.run = [options] { return run(*options); };
  });
}

}  // namespace chexnet
