// What a run or its job would refuse, found before the job waits in a queue.
#pragma once

#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {

// `configs` are those of `points`. ConfigError for two that are the same run.
void refuse_equal_points(const std::vector<SweepPoint>& points,
                         const std::vector<Config>& configs);

// Settles ranks per host, and how srun and the MPI speak to each other.
// ConfigError for a setup that is no shell, a batch that the ranks cannot
// share, or a key of pseudonyms that would go with the container.
void settle_job(const std::vector<Config>& configs, JobRequest& request);

void warn_of_job(const std::vector<Config>& configs, const JobRequest& request);
// `mounts`: as --mount has them.
void warn_of_absent_paths(const Config& config, const Strings& mounts);

}  // namespace chexnet
