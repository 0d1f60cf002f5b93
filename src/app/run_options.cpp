#include "chexnet/app/run_options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/launch/signals.hpp"

namespace chexnet {
namespace {

int wanted_ranks(const LaunchConfig& config) {
  if (config.ranks > 0) return static_cast<int>(config.ranks);
  if (config.device == "cpu") return 1;
  return std::max(1, CudaLibrary::visible_gpus());
}

void refuse_singletons(int world_size) {
  const std::string problem = singleton_problem(
      [](const char* name) -> const char* { return std::getenv(name); }, world_size);
  if (!problem.empty()) throw DeviceError(problem);
}

}  // namespace

void add_set_option(CLI::App& command, std::vector<std::string>& set, const std::string& what) {
  command.add_option("--set", set, "key=value, overrides " + what + "; may be repeated")
      ->expected(1)
      ->take_all();
}

Launch enter_world(const LaunchConfig& config, Invocation& invocation) {
  const auto env = [](const char* name) -> const char* { return std::getenv(name); };
  Launch launch;
  if (started_as_rank(env)) {
    launch.comm = open_mpi({config.timeout_s});
    refuse_singletons(launch.comm->size());
  } else {
    refuse_singletons(1);
    const int ranks = wanted_ranks(config);
    if (ranks > 1) {
      const auto command =
          mpirun_command(ranks, allowed_cpus().size(), geteuid() == 0, config.mpi_args,
                         invocation.program, invocation.arguments);
      std::string text;
      for (const auto& word : command) text += (text.empty() ? "" : " ") + word;
      log_info("starting " + std::to_string(ranks) + " ranks: " + text);
      launch.parent_exit_code = run_as_parent(command);
      return launch;
    }
    launch.comm = solo_communicator();
  }
  install_stop_signals();
  set_log_rank(launch.comm->rank(), launch.comm->size());
  if (launch.comm->size() > 1) invocation.abort = abort_mpi;
  return launch;
}

}  // namespace chexnet
