// What `doctor` says of measured figures: pure decisions, so that machines not
// at hand can be checked in tests. Each result says what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/launch/machine/gpu_access.hpp"
#include "chexnet/launch/machine/nvml.hpp"

namespace chexnet {

enum class Level { kPass, kWarn, kFail, kSkip };
const char* level_name(Level level);  // "PASS", …

struct CheckResult {
  Level level = Level::kPass;
  std::string name, text, advice;  // advice: empty for kPass
};

// `variant`: cuda13 or cuda12; `driver`: "580.65.06", empty without one.
CheckResult check_driver(const std::string& variant, const std::string& driver);
// Two versions of a library that must agree.
CheckResult check_versions(const std::string& library, const std::string& built,
                           const std::string& found);
// One result for each trouble of a GPU, or one PASS. Its processes are those
// of others (keep_strangers).
std::vector<CheckResult> check_gpu(const GpuState& gpu);
// Whether this build can compute on the GPUs: why not, and how many the driver
// shows. `elsewhere`: why not on hosts that have GPUs, as far as a login node
// without any can tell.
CheckResult check_gpu_access(const GpuProblem& problem, int visible,
                             const GpuBuild& build,
                             const GpuProblem& elsewhere);
// GPUs of the host against those this process may use.
CheckResult check_visible_gpus(size_t on_host, int visible, int ranks_here);
// `bytes`: ulimit -l, -1 = unlimited. `needed`: RDMA or GPUs pin memory.
CheckResult check_locked_memory(double bytes, bool needed);
// Free bytes of /dev/shm for MPI, NCCL and the loader's ring.
CheckResult check_shared_memory(double free_bytes, int ranks_here);
CheckResult check_open_files(double limit);
// Seconds between the clocks of hosts.
CheckResult check_clock_skew(double seconds, int hosts);
// Room in the folder of the runs; inodes -1 = the file system does not count
// them; quota_bytes -1 = no quota known.
CheckResult check_room(const std::string& folder, double free_bytes,
                       double free_inodes, double quota_bytes);
CheckResult check_read_rate(const std::string& folder, double mb_per_s);
// Each rank's time for equal work, seconds; named by rank.
CheckResult check_pace(const std::vector<double>& seconds);

}  // namespace chexnet
