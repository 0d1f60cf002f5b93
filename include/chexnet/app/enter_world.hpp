// Enters a world of ranks: this process is a rank already, or starts some and
// waits.
#pragma once

#include <string>

#include "chexnet/app/commands.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/run/rank_world.hpp"
#include "chexnet/train/run/run_folder.hpp"

namespace chexnet {

// A command's requirements for its ranks, and for the parent that starts them.
struct ParentTask {
  bool dry_run = false;  // print the command and stop
  // Of a training: its failures are explained in the run folder, and its ranks
  // started again (launch.restarts). Null: no run.
  const Config* training = nullptr;
  Resume resume = Resume::kNo;      // whether a run in the folder is meant
  std::string resume_command = {};  // of a training
  bool reads_stdin = false;         // rank 0 does; without restarts
  // "/dev/fd/63": ranks that are started lack it
  std::string own_descriptor = {};
  // The command checks stop_requested(); a signal ends others.
  bool stops = false;
};

// Where no launcher started this process and more than one rank is wanted,
// starts mpirun and waits. DeviceError when ranks cannot start here;
// ConfigError for a dry run inside a rank.
RankWorld enter_world(const LaunchConfig& config, Invocation& invocation,
                      const ParentTask& task = {});

// The command that continues this invocation's run, for a shell; of a rank
// that a parent started, the parent's, without what a restart adds.
std::string resume_command(const Invocation& invocation, int ranks);

}  // namespace chexnet
