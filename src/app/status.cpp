// status: where a run stands, seen from any machine that sees its folder. It
// reads files and asks nobody, so it works while the ranks run, hang or are
// gone.
#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/report/openmetrics.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "remote_files.hpp"

namespace chexnet {
namespace {

struct StatusOptions {
  std::vector<std::string> folders;
  bool json = false, openmetrics = false;
};

// A folder as it was named, and where it can be read.
struct Folder {
  std::string name;
  std::filesystem::path path;
};

// Not what was fetched for a moment: who asks again asks for the same run.
std::string name_of(const std::filesystem::path& run, const Folder& folder) {
  if (!is_s3(folder.name)) return run.string();
  std::string name = folder.name;
  while (name.ends_with('/')) name.pop_back();
  if (run == folder.path) return name;
  return name + "/" + run.filename().string();
}

// A run that cannot be read, in a folder of many, hides no other one.
std::vector<RunSummary> summaries(const std::vector<Folder>& folders) {
  std::vector<RunSummary> runs;
  std::exception_ptr problem;
  for (const auto& folder : folders)
    for (const auto& path : find_runs(folder.path)) {
      try {
        runs.push_back(summarize_run(path));
        runs.back().folder = name_of(path, folder);
      } catch (const Error& e) {
        if (path == folder.path) throw;
        log_warning(e.what());
        problem = std::current_exception();
      }
    }
  if (runs.empty() && problem) std::rethrow_exception(problem);
  return runs;
}

int run(const StatusOptions& options) {
  RemoteFiles remote({});
  std::vector<Folder> folders;
  for (const auto& folder : options.folders)
    folders.push_back({folder, remote.input(folder, FetchedFiles::kRecords)});
  const auto runs = summaries(folders);
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
  auto options = std::make_shared<StatusOptions>();
  command
      ->add_option("folders", options->folders,
                   "run folders, or folders of runs")
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
