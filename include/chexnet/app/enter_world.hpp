// How a world of ranks comes to be: this process is a rank already, or starts
// some and waits.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "chexnet/app/commands.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/launch/lost_hosts.hpp"
#include "chexnet/train/run/rank_world.hpp"

namespace chexnet {

// What a parent does beyond starting ranks; only runs with a folder are
// explained and restarted.
struct ParentTask {
  bool dry_run = false;  // print the command and stop
  std::filesystem::path run_folder;
  std::string resume_command;
  bool resumes = false;  // --resume: a run that the folder holds is meant
  int restarts = 0;
  int min_hosts = 1;       // launch.min_hosts
  int64_t accumulate = 1;  // train.accumulate
  // How some of its ranks share the batch of a run that had `before`
  // (launch/lost_hosts.hpp); empty: any number can.
  std::function<RankShare(int before, int most)> ranks_that_share = {};
  // Throws where the command cannot run on so many; empty: on any number.
  std::function<void(int ranks)> check_ranks = {};
  bool reads_stdin = false;  // rank 0 does; without restarts
  // "/dev/fd/63": ranks that are started lack it
  std::string own_descriptor = {};
  // The command looks at stop_requested(); others are ended by a signal.
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
