// status: where a run stands, seen from any machine that sees its folder. It
// reads files and asks nobody, so it works while the ranks run, hang or are
// gone.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/report/run_comparison.hpp"

namespace chexnet {
namespace {

struct Options {
  std::vector<std::string> folders;
  bool json = false;
};

int run(const Options& options) {
  std::vector<RunSummary> runs;
  for (const auto& folder : options.folders)
    for (const auto& path : find_runs(folder))
      runs.push_back(summarize_run(path));
  if (options.json) {
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
  command->callback([&invocation, options] {
    invocation.run = [options] { return run(*options); };
  });
}

}  // namespace chexnet
