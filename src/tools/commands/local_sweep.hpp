// A sweep on this machine, without a batch system.
#pragma once

#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {

// The points of `request` one after another, each as `train --resume auto`; the
// others go on when one fails. Prints the comparison of the complete ones. The
// worst exit code, or that of a stop.
int run_sweep(const JobRequest& request);

// Prints the commands that run_sweep() would start, a line for each point.
// Returns 0.
int print_sweep(const JobRequest& request);

}  // namespace chexnet
