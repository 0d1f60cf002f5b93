// How a world of ranks comes to be: this process is a rank already, or starts
// some and waits.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "chexnet/app/commands.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/run/rank_world.hpp"

namespace chexnet {

// What a parent does beyond starting ranks; only runs with a folder are
// explained and restarted.
struct ParentTask {
  bool dry_run = false;  // print the command and stop
  std::filesystem::path run_folder;
  std::string resume_command;
  int restarts = 0;
  int min_hosts = 1;  // launch.min_hosts
  // The largest number of ranks, of this many at most, that can share the run's
  // batch; empty: any number can.
  std::function<int(int)> ranks_that_share;
  bool stops = false;  // the command looks at stop_requested(); others are
                       // ended by a signal
};

// Where no launcher started this process and more than one rank is wanted,
// starts mpirun and waits. DeviceError when ranks cannot start here;
// ConfigError for a dry run inside a rank.
RankWorld enter_world(const LaunchConfig& config, Invocation& invocation,
                      const ParentTask& task = {});

// The command that continues this invocation's run, for a shell.
std::string resume_command(const Invocation& invocation, int ranks);

}  // namespace chexnet
