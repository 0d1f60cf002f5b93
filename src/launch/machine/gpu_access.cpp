// In the order in which a person would look: is there a driver, does it start,
// does it show a GPU, was this program built for GPUs, for this driver, for
// this GPU? The first answer that is wrong is the one to mend first.
#include "chexnet/launch/machine/gpu_access.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

struct DriverError {
  int code;
  const char *what, *remedy;
};
// Of cuda.h, those that a host's set-up causes.
constexpr std::array kDriverErrors = {
    DriverError{34, "libcuda.so.1 is the stub that programs are linked with",
                "take the folder stubs out of LD_LIBRARY_PATH"},
    DriverError{46, "the GPU is taken or not ready",
                "nvidia-smi shows who uses it; its compute mode may be "
                "exclusive"},
    DriverError{802, "the host is not ready for CUDA",
                "systemctl status nvidia-fabricmanager (an administrator)"},
    DriverError{803,
                "the driver's library and its kernel module are of different "
                "versions",
                "restart this host: the driver was updated under it"},
    DriverError{804,
                "libcuda.so.1 is of CUDA's compatibility package, which this "
                "GPU does not take",
                "take the folder compat out of LD_LIBRARY_PATH"}};

GpuProblem driver_error(const CudaDriver& driver) {
  const auto known =
      std::ranges::find(kDriverErrors, driver.error, &DriverError::code);
  const std::string code = driver.error_name.empty()
                               ? "CUDA error " + std::to_string(driver.error)
                               : driver.error_name;
  if (known != kDriverErrors.end())
    return {"the CUDA driver does not start: " + std::string(known->what) +
                " (" + code + ")",
            known->remedy + std::string(kOrOnCpu)};
  return {"the CUDA driver does not start (" + code + ")",
          std::string("nvidia-smi and dmesg tell why") + kOrOnCpu};
}

constexpr size_t kLongestQuote = 200;  // of a variable

GpuProblem hidden_gpus(const GpuFacts& facts) {
  if (facts.on_bus == 0 && facts.of_job == 0) return {};
  GpuProblem problem;
  problem.what = facts.on_bus > 0
                     ? "this host has " + counted(facts.on_bus, "NVIDIA GPU")
                     : "the batch job was given " +
                           counted(facts.of_job, "GPU") + " on this host";
  if (!facts.driver.present) {
    problem.what += ", but there is no driver: libcuda.so.1 cannot be opened";
    problem.remedy =
        "in a container --nv (Apptainer) or --gpus all (Docker); else "
        "NVIDIA's driver";
  } else if (facts.visible_devices) {
    problem.what +=
        ", but the driver shows none to this process, whose "
        "CUDA_VISIBLE_DEVICES is \"" +
        shortened(printable(*facts.visible_devices), kLongestQuote) + "\"";
    problem.remedy = "unset or mend CUDA_VISIBLE_DEVICES";
  } else {
    problem.what += ", but the driver shows none to this process";
    problem.remedy =
        "ask the batch system for GPUs (submit --gpus-per-node); is "
        "/dev/nvidia0 there and readable?";
  }
  problem.remedy += kOrOnCpu;
  return problem;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

GpuProblem no_code_for(const DriverGpu& gpu, const GpuBuild& build) {
  const std::string own =
      "sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor);
  constexpr int kVolta = 7;  // the oldest of variant cuda12
  const bool other_variant = gpu.major == kVolta && build.variant != "cuda12";
  return {
      gpu.name + " is of architecture " + own + ", and this build (" +
          build.variant + ") has code for " + list_of(build.architectures) +
          " alone",
      (other_variant
           ? std::string("variant cuda12 has it: scripts/setup --gpu --cuda "
                         "cuda12, then scripts/build cuda12")
           : std::string("another LibTorch (scripts/setup --torch), or "
                         "hide this GPU by CUDA_VISIBLE_DEVICES")) +
          kOrOnCpu};
}

struct Architecture {
  bool ptx = false, exact = false;
  int major = 0, minor = 0;
};
// "sm_86", "sm_90a" (of that chip alone), "compute_120"
Architecture parse(const std::string& word) {
  Architecture found;
  found.ptx = word.starts_with("compute_");
  const auto at = word.find('_');
  const int number =
      at == std::string::npos ? 0 : std::atoi(word.c_str() + at + 1);
  found.major = number / 10;
  found.minor = number % 10;
  found.exact = word.ends_with("a");
  return found;
}

}  // namespace

bool has_code_for(const GpuBuild& build, int major, int minor) {
  return std::ranges::any_of(build.architectures, [&](const auto& word) {
    const Architecture code = parse(word);
    if (code.exact) return code.major == major && code.minor == minor;
    if (code.major == major) return code.minor <= minor;
    return code.ptx && code.major < major;
  });
}

// What the other variant needs.
constexpr int kCuda12 = 12000;

GpuProblem gpu_problem(const GpuFacts& facts, const GpuBuild& build) {
  const CudaDriver& driver = facts.driver;
  if (driver.error != 0) return driver_error(driver);
  if (driver.gpus.empty()) return hidden_gpus(facts);
  if (build.cuda_major == 0)
    return {"this host shows " + counted(std::ssize(driver.gpus), "GPU") +
                ", but this program was built without its CUDA side",
            std::string("scripts/setup --gpu, then scripts/build") + kOrOnCpu};
  if (driver.version < 1000 * build.cuda_major)
    return {"the NVIDIA driver is too old: it serves CUDA " +
                cuda_version_text(driver.version) + ", and this build (" +
                build.variant + ") needs CUDA " +
                std::to_string(build.cuda_major) + ".0",
            std::string(build.cuda_major > 12 && driver.version >= kCuda12
                            ? "a newer driver, or variant cuda12: scripts/"
                              "setup --gpu --cuda cuda12, then scripts/build "
                              "cuda12"
                            : "a newer driver") +
                kOrOnCpu};
  for (const auto& gpu : driver.gpus)
    if (!has_code_for(build, gpu.major, gpu.minor))
      return no_code_for(gpu, build);
  return {};
}

}  // namespace chexnet
