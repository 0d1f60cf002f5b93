// status: where a run stands, seen from any machine that sees its folder. It
// reads files and asks nobody, so it works while the ranks run, hang or are
// gone.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/report/openmetrics.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "metrics_server.hpp"

namespace chexnet {
namespace {

struct Options {
  std::vector<std::string> folders;
  bool json = false, openmetrics = false;
  std::string listen;
};

std::vector<RunSummary> summaries(const std::vector<std::string>& folders) {
  std::vector<RunSummary> runs;
  for (const auto& folder : folders)
    for (const auto& path : find_runs(folder))
      runs.push_back(summarize_run(path));
  return runs;
}

// A folder that is gone now may be back for the next question.
std::string page_of(const std::vector<std::string>& folders) {
  std::vector<RunSummary> runs;
  for (const auto& folder : folders) {
    try {
      for (auto& run : summaries({folder})) runs.push_back(std::move(run));
    } catch (const Error& e) {
      log_warning(e.what());
    }
  }
  return openmetrics_text(runs);
}

int run(const Options& options) {
  const auto runs = summaries(options.folders);
  if (!options.listen.empty())
    return serve_metrics(options.listen,
                         [&] { return page_of(options.folders); });
  if (options.openmetrics) {
    std::cout << openmetrics_text(runs) << std::flush;
  } else if (options.json) {
    std::cout << "[";
    for (size_t i = 0; i < runs.size(); ++i)
      std::cout << (i > 0 ? ",\n" : "") << summary_json(runs[i]);
    std::cout << "]" << std::endl;
  } else if (runs.size() == 1) {
    std::cout << summary_text(runs.front()) << std::endl;
  } else {
    std::cout << comparison_text(runs) << std::flush;
  }
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "status",
      "step, speed, waits and time left of a run; compares several runs");
  auto options = std::make_shared<Options>();
  command
      ->add_option("folders", options->folders,
                   "run folders, or folders of runs")
      ->required();
  command->add_flag("--json", options->json,
                    "a JSON array on stdout (docs/json.md)");
  command->add_flag("--openmetrics", options->openmetrics,
                    "gauges for Prometheus on stdout (docs/monitoring.md)");
  command->add_option(
      "--listen", options->listen,
      "answer http://ADDRESS:PORT/metrics with these gauges, until a signal "
      "asks to stop; PORT alone is of 127.0.0.1, port 0 any free one");
  command->callback([&invocation, options] {
    invocation.run = [options] { return run(*options); };
  });
}

}  // namespace chexnet
