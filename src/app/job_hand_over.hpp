// What `submit` gives to a batch system, from a file that nobody else can read.
// DeviceError when its command is missing or refuses the job; else what it
// prints, such as the job's number, is on stdout.
#pragma once

#include <string>

#include "chexnet/launch/job_script.hpp"

namespace chexnet {

// To sbatch, qsub, bsub or flux; of a sweep, Flux gets a job for each point.
void hand_over(const JobRequest& request, const std::string& script);

void hand_over_to_kubernetes(const std::string& manifest);

}  // namespace chexnet
