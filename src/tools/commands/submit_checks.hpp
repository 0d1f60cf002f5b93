// What a run or its job would refuse, found before the job waits in a queue.
#pragma once

#include <filesystem>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {

// CheckpointError where `folder`, which would get the runs of `points`, holds a
// run itself, or other things and no run below it.
void check_may_hold_sweep(const std::filesystem::path& folder,
                          const std::vector<SweepPoint>& points);

// What `train --dry-run` of each would refuse: hosts that cannot be read, a
// batch that the ranks cannot share. ConfigError.
void check_local_points(const std::vector<Config>& configs);

// `configs` are those of `points`. ConfigError for two that are the same run.
void refuse_equal_points(const std::vector<SweepPoint>& points,
                         const std::vector<Config>& configs);

// --stop-losers: "train.rungs=[1,3]" for a sweep of `points` runs: a third of
// train.epochs, a third of that and so on, as often as a third of the runs
// leaves one. ConfigError: too few runs or epochs for one rung, or a sweep of
// `lists` whose scores after an epoch do not compare.
std::string rungs_of(const Config& config,
                     const std::vector<std::string>& lists, size_t points);

// Settles ranks per host, and how srun and the MPI speak to each other.
// ConfigError for a setup that is no shell, a batch that the ranks cannot
// share, or a key of pseudonyms that would go with the container.
void settle_job(const std::vector<Config>& configs, JobRequest& request);

void warn_of_job(const std::vector<Config>& configs, const JobRequest& request);
// Tables and weights that this host does not see. `mounts`: as --mount has
// them.
void warn_of_absent_paths(const std::vector<Config>& configs,
                          const Strings& mounts);

}  // namespace chexnet
