// What one process of a host measures for `doctor`: driver, GPUs, limits, room
// and rate of disks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/launch/machine/health.hpp"

namespace chexnet {

struct HostCheckOptions {
  // Where runs will be stored; a file of 64 MiB is written, read and removed.
  std::string folder = {};
  int ranks_here = 1;
  int visible_gpus = 0;  // that the driver shows to this process
  GpuBuild build = {};
  GpuProblem gpu_problem = {};        // what is against computing on them
  GpuProblem problem_elsewhere = {};  // where there are none: on other hosts
  bool pins_memory = false;           // ranks compute on GPUs
  std::vector<unsigned> pids_on_gpus = {};  // of the ranks here, if they do
};

// Throws nothing: a measurement that fails gives a failed result or none.
std::vector<CheckResult> check_host(const HostCheckOptions& options);

// Of this host's /dev/shm; nothing where there is none.
std::optional<CheckResult> shared_memory_check(int ranks_here);

// Of a file of 64 MiB that is written to `folder`, dropped from the page cache
// and read back; empty where it cannot be written. Network file systems answer
// from their servers' caches, so this is a best case.
std::optional<double> read_rate_mb_per_s(const std::string& folder);

}  // namespace chexnet
