// Each check takes measured numbers, so tests can give it machines that we do
// not have. A check without its subject (no GPU, one host) is skipped and not
// passed.
#include "chexnet/launch/machine/health.hpp"

#include <algorithm>
#include <cstdlib>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

CheckResult pass(const std::string& name, const std::string& text) {
  return {Level::kPass, name, text, ""};
}
CheckResult skip(const std::string& name, const std::string& text) {
  return {Level::kSkip, name, text, ""};
}

}  // namespace

const char* level_name(Level level) {
  switch (level) {
    case Level::kPass:
      return "PASS";
    case Level::kWarn:
      return "WARN";
    case Level::kFail:
      return "FAIL";
    case Level::kSkip:
      return "SKIP";
  }
  return "";
}

CheckResult check_driver(const std::string& variant,
                         const std::string& driver) {
  const std::string name = "driver";
  if (driver.empty()) return skip(name, "NVML shows no NVIDIA driver here");
  // NVIDIA's CUDA compatibility table: CUDA 13.0 and 12.x.
  const int least = variant == "cuda12" ? 525 : 580;
  if (std::atoi(driver.c_str()) >= least)
    return pass(name, driver + " serves variant " + variant + " (at least " +
                          std::to_string(least) + ")");
  return {Level::kFail, name,
          driver + " is too old for variant " + variant + ", which needs " +
              std::to_string(least),
          variant == "cuda12" ? "a newer driver"
                              : "a newer driver, or a build of variant cuda12"};
}

CheckResult check_versions(const std::string& library, const std::string& built,
                           const std::string& found) {
  if (found.empty())
    return skip(library, "built with " + built + "; not loaded here");
  if (built == found) return pass(library, found);
  return {Level::kWarn, library,
          "built with " + built + ", running with " + found,
          "put the library of the build first (LD_LIBRARY_PATH, module order)"};
}

CheckResult check_gpu_access(const GpuProblem& problem, int visible,
                             const GpuBuild& build,
                             const GpuProblem& elsewhere) {
  const std::string name = "CUDA";
  if (!problem.empty())
    return {Level::kFail, name, problem.what, problem.remedy};
  std::string served;
  for (const auto& word : build.architectures) served += " " + word;
  const std::string has = build.cuda_major > 0
                              ? "this build has code for" + served
                              : "this build is for CPUs alone";
  if (visible == 0 && !elsewhere.empty())
    return {Level::kSkip, name,
            "no GPU here, and none could be used elsewhere: " + elsewhere.what,
            elsewhere.remedy};
  if (visible == 0) return skip(name, "no GPU here; " + has);
  return pass(name, counted(visible, "GPU") + " usable; " + has);
}

std::vector<CheckResult> check_gpu(const GpuState& gpu) {
  std::vector<CheckResult> found;
  const std::string name = "GPU " + std::to_string(gpu.index);
  const auto trouble = [&](Level level, const std::string& text,
                           const std::string& advice) {
    found.push_back({level, name, gpu.name + ": " + text, advice});
  };
  if (gpu.uncorrected_ecc > 0)
    trouble(Level::kFail,
            std::to_string(gpu.uncorrected_ecc) +
                " uncorrected memory errors since the driver was loaded",
            "reset or drain this GPU; results computed on it are in doubt");
  const std::string throttled = throttle_text(gpu.throttle_reasons);
  if (!throttled.empty())
    trouble(Level::kWarn,
            "its clock is held down: " + throttled + " (" +
                fixed(gpu.sm_clock_mhz, 0) + " MHz, " + fixed(gpu.power_w, 0) +
                " W, " + fixed(gpu.temperature_c, 0) + " C)",
            "look at cooling, power limits (nvidia-smi -q -d PERFORMANCE)");
  if (gpu.compute_mode == 2)
    trouble(Level::kFail, "compute mode is prohibited",
            "nvidia-smi -c 0 (an administrator)");
  if (gpu.persistence == 0)
    trouble(Level::kWarn,
            "persistence mode is off: each start waits for the driver",
            "nvidia-persistenced, or nvidia-smi -pm 1 (an administrator)");
  if (gpu.mig)
    trouble(
        Level::kWarn,
        "is cut into " + std::to_string(gpu.mig_uuids.size()) +
            " MIG devices, of which a training can use one: NCCL starts one "
            "rank on a GPU",
        "train on whole GPUs where there are any");
  for (const auto& process : gpu.processes)
    trouble(Level::kWarn,
            "process " + std::to_string(process.pid) + " uses it (" +
                (process.bytes < 0 ? "how much memory is not known"
                                   : readable_bytes(process.bytes)) +
                ")",
            "end it, or ask for exclusive hosts");
  if (found.empty())
    found.push_back(pass(name, gpu.name + ", " +
                                   readable_bytes(gpu.memory_bytes) + ", " +
                                   fixed(gpu.sm_clock_mhz, 0) +
                                   " MHz, no errors, nobody else on it"));
  return found;
}

CheckResult check_visible_gpus(size_t on_host, int visible, int ranks_here) {
  const std::string name = "visible GPUs";
  if (on_host == 0) return skip(name, "no GPU on this host");
  const std::string text = std::to_string(visible) + " of " +
                           std::to_string(on_host) + " for each process";
  if (visible == 0)
    return {
        Level::kFail, name, text,
        "CUDA_VISIBLE_DEVICES, --gpus of the batch job, the container's --nv"};
  if (ranks_here > 1 && visible < ranks_here)
    return {Level::kWarn, name,
            text +
                ": ranks that do not see each other's GPUs exchange data "
                "through host memory",
            "--gpus-per-node instead of --gpus-per-task, or --gpu-bind=none"};
  return pass(name, text);
}

CheckResult check_locked_memory(double bytes, bool needed) {
  const std::string name = "locked memory";
  const std::string text = bytes < 0 ? "unlimited" : readable_bytes(bytes);
  if (bytes < 0) return pass(name, text);
  constexpr double kEnough = 1 << 30;
  if (!needed)
    return skip(name,
                text + "; nothing here pins memory (no GPU, no RDMA adapter)");
  if (bytes >= kEnough) return pass(name, text);
  return {
      Level::kFail, name, text + ": RDMA and pinned buffers need more",
      "ulimit -l unlimited; under Slurm PropagateResourceLimitsExcept=MEMLOCK"};
}

CheckResult check_shared_memory(double free_bytes, int ranks_here) {
  const std::string name = "/dev/shm";
  const std::string text = readable_bytes(free_bytes) + " free";
  // Segments of MPI and NCCL.
  const double wanted = 64e6 * std::max(1, ranks_here);
  if (free_bytes >= wanted) return pass(name, text);
  return {free_bytes < wanted / 8 ? Level::kFail : Level::kWarn, name,
          text + ", and MPI and NCCL may take " + readable_bytes(wanted) +
              " for " + counted(ranks_here, "rank"),
          "a container's --shm-size=" + fixed(wanted / 1e6, 0) +
              "m, or remove what others left in /dev/shm"};
}

CheckResult check_open_files(double limit) {
  const std::string name = "open files";
  if (limit < 0 || limit >= 1024)
    return pass(name, limit < 0 ? "unlimited" : fixed(limit, 0));
  return {Level::kWarn, name,
          fixed(limit, 0) + ": little for readers, sockets and libraries",
          "ulimit -n 4096"};
}

CheckResult check_clock_skew(double seconds, int hosts) {
  const std::string name = "clocks";
  if (hosts < 2) return skip(name, "one host");
  const std::string text = "hosts differ by " + fixed(1e3 * seconds, 1) + " ms";
  if (seconds < 1) return pass(name, text);
  return {Level::kWarn, name, text + ": logs of hosts will not fit together",
          "chrony or ntpd on every host"};
}

CheckResult check_room(const std::string& folder, double free_bytes,
                       double free_inodes, double quota_bytes) {
  const std::string name = "room for runs";
  std::string text = folder + ": " + readable_bytes(free_bytes) + " free";
  if (free_inodes >= 0) text += ", " + fixed(free_inodes, 0) + " inodes";
  if (quota_bytes >= 0)
    text += ", " + readable_bytes(quota_bytes) + " left of the quota";
  const double least =
      quota_bytes >= 0 ? std::min(free_bytes, quota_bytes) : free_bytes;
  // A checkpoint of DenseNet-121 with Adam's state is 85 MB; some are kept
  // while one is written.
  if (least < 500e6 || (free_inodes >= 0 && free_inodes < 100))
    return {Level::kFail, name, text,
            "another folder with --out, or make room"};
  if (least < 5e9 || (free_inodes >= 0 && free_inodes < 10'000))
    return {Level::kWarn, name, text,
            "checkpoint.keep: 1, or another folder with --out"};
  return pass(name, text);
}

CheckResult check_read_rate(const std::string& folder, double mb_per_s) {
  const std::string name = "file system";
  const std::string text =
      folder + ": " + fixed(mb_per_s, 0) + " MB/s read back";
  // 100 MB/s is 250 original PNGs a second.
  if (mb_per_s >= 100) return pass(name, text);
  return {Level::kWarn, name, text,
          "data.stage: auto copies packs to a local disk; `pack` makes reading "
          "ten times less"};
}

CheckResult check_pace(const std::vector<double>& seconds) {
  const std::string name = "speed of ranks";
  if (seconds.size() < 2) return skip(name, "one rank");
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  // The lower one, so that of two ranks the slower is compared with the other.
  const double median = sorted[(sorted.size() - 1) / 2];
  const auto slowest = std::ranges::max_element(seconds);
  const double ratio = *slowest / median;
  const std::string text = "slowest rank " +
                           std::to_string(slowest - seconds.begin()) + ": " +
                           fixed(ratio, 2) + " x the median on equal work";
  if (ratio < 1.3) return pass(name, text);
  return {Level::kWarn, name, text,
          "another process on its cores, a lower clock, or a bad binding (see "
          "the table)"};
}

}  // namespace chexnet
