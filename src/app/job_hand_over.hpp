// What `submit` gives to a batch system, from a file that nobody else can read.
// DeviceError when its command is missing or refuses the job; else what it
// prints, such as the job's number, is on stdout.
#pragma once

#include <functional>
#include <string>

#include "chexnet/launch/job_script.hpp"

namespace chexnet {

// What the batch system calls the job of a run that it has taken.
using Submitted =
    std::function<void(const std::string& run_folder, const std::string& job)>;

// To sbatch or qsub.
// `submitted` is called for each run, its folder as the host has it.
void hand_over(const JobRequest& request, const std::string& script,
               const Submitted& submitted);

}  // namespace chexnet
