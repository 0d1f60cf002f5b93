// The thin parent that starts ranks through mpirun, waits for them, and starts
// them again.
#pragma once

#include <string>
#include <vector>

#include "chexnet/app/enter_world.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "own_run.hpp"

namespace chexnet {

// Runs `whole` to its end and returns the exit code for the user. With a run
// folder, a failure is explained by one sentence, the last line of output, and
// restarted as often as the task says. `timeout_s`: launch.timeout_s, in which
// mpirun must have reached all hosts.
int run_ranks(SelfLaunch whole, const ParentTask& task, double timeout_s);

inline constexpr const char* kUnreachedHint =
    "do the hosts reach each other (launch.network, a firewall)?";
// Ranks that did not start in time, in the log and for the post-mortem, where
// none says it yet. `hint`: what to look at before the time is raised.
void explain_late_start(const OwnRun& run, const ParentTask& task,
                        const std::string& what, const std::string& hint);

// Makes `words`, a command of `train`, go on with its run: with --resume auto,
// unless the user said
// --resume in any spelling.
void add_resume(std::vector<std::string>& words);

}  // namespace chexnet
