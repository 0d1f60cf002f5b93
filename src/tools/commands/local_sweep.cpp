#include "local_sweep.hpp"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/report/run_comparison.hpp"

namespace chexnet {
namespace {

// The command of a point on this machine.
std::vector<std::string> command_of(const SweepPoint& point,
                                    const JobRequest& request) {
  std::vector<std::string> command = request.program;
  command.emplace_back("train");
  command.insert(command.end(), request.arguments.begin(),
                 request.arguments.end());
  for (const auto& assignment : point.assignments)
    command.insert(command.end(), {"--set", assignment});
  command.insert(command.end(),
                 {"--out", point.run_folder, "--resume", "auto"});
  return command;
}

}  // namespace

int run_sweep(const JobRequest& request) {
  int failed = 0, worst = 0;
  std::vector<RunSummary> runs;
  ParentSignals signals;
  signals.keep();
  for (size_t i = 0; i < request.points.size(); ++i) {
    const auto& point = request.points[i];
    log_info("run " + std::to_string(i + 1) + " of " +
             std::to_string(request.points.size()) + ": " + point.run_folder);
    if (signals.stop_within(0)) return static_cast<int>(ExitCode::kRequeue);
    const int code = run_as_parent(command_of(point, request), signals);
    if (code == static_cast<int>(ExitCode::kRequeue) ||
        signals.asked_to_stop()) {
      log_info("the sweep stopped in run " + std::to_string(i + 1) + " of " +
               std::to_string(request.points.size()) +
               ": the same command goes on there");
      return code;
    }
    if (code != 0) {
      log_error("[submit] " + point.run_folder + " ended with exit code " +
                std::to_string(code));
      ++failed;
      worst = std::max(worst, code);
      continue;
    }
    runs.push_back(summarize_run(point.run_folder));
  }
  if (!runs.empty()) std::cout << comparison_text(runs) << std::flush;
  if (failed > 0)
    log_error("[submit] " + std::to_string(failed) + " of " +
              std::to_string(request.points.size()) +
              " runs failed. Hint: the same command goes on with those that "
              "are not complete");
  return worst;
}

int print_sweep(const JobRequest& request) {
  for (const auto& point : request.points)
    std::cout << command_text(command_of(point, request)) << "\n";
  std::cout.flush();
  return 0;
}

}  // namespace chexnet
