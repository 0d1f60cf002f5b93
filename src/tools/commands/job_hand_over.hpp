// What `submit` gives to a batch system, from a file that nobody else can read.
#pragma once

#include <string>

#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {

// To sbatch or qsub. What it prints, the job's number, is on stdout, and stands
// in the folder of each run, which is made as the run would make it.
// DeviceError where the command is missing or refuses the job.
void hand_over(const JobRequest& request, const std::string& script);

}  // namespace chexnet
