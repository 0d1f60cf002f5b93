// The thin parent that starts ranks through mpirun, waits for them, and starts
// them again.
#pragma once

#include <string>
#include <vector>

#include "chexnet/app/enter_world.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {

// Runs `launch` to its end and returns the exit code for the user. With a run
// folder, a failure is explained by one sentence, the last line of output, and
// restarted as often as the task says.
int run_ranks(SelfLaunch launch, const ParentTask& task);

// Makes `words`, a command of `train`, go on with its run: with --resume auto,
// unless the user said
// --resume in any spelling.
void add_resume(std::vector<std::string>& words);

}  // namespace chexnet
