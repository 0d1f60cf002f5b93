// A passed test is remembered under all that its result depends on. So another
// driver, another GPU or a new build is tested anew, and an unchanged one costs
// two checksums of files.
#include "device_self_test.hpp"

#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/train/run/remembered_check.hpp"

namespace chexnet {
namespace {

std::string file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fname : "";
}

// The program, and the library of `cuda`: found by the address of its virtual
// function table.
std::string build_identity(const CudaLibrary& cuda) {
  const void* of_library = *reinterpret_cast<const void* const*>(&cuda);
  return sha256_file("/proc/self/exe") + " " + sha256_file(file_of(of_library));
}

std::string subject_text(const SelfTestSubject& subject,
                         const TestedDevice& tested, int ranks) {
  return tested.identity + "\n" + subject.arch + " " +
         choice_name(subject.precision) + "\nall-reduce of " +
         (ranks > 1 ? "several ranks" : "one rank") + ", " +
         choice_name(subject.compression) +
         (subject.own_kernels ? "" : "\nLibTorch's kernels alone") +
         (subject.sync_batchnorm ? "\nsynchronized BatchNorm" : "");
}

}  // namespace

TestedDevice tested_device(const Device& device) {
  const GpuInfo& gpu = device.gpu;
  return {device.where, gpu.name + " " + gpu.uuid + " of " + host_name(),
          gpu.name + " sm_" + std::to_string(gpu.major) +
              std::to_string(gpu.minor) + "\n" + device.cuda->versions() +
              "\ntorch " TORCH_VERSION "\nbuild " +
              build_identity(*device.cuda)};
}

bool self_test_once(const SelfTestSubject& subject, const TestedDevice& tested,
                    Communicator& comm, double timeout_s,
                    const std::vector<BackendEntry>& backends) {
  const RememberedCheck check("self-test",
                              subject_text(subject, tested, comm.size()));
  if (!any_rank(comm, !check.passed())) return subject.own_kernels;
  if (comm.rank() == 0)
    log_info("[self-test] first run on " + tested.place +
             " with this driver and build: one step against the CPU engine");
  const SelfTestResult result =
      self_test(subject, tested.where, comm, timeout_s, backends);
  const std::string problem =
      result.problem().empty() ? "" : subject.arch + ", " + result.problem();
  if (!any_rank(comm, !problem.empty())) {
    check.remember(result.summary());
    if (comm.rank() == 0) log_info("[self-test] passed: " + result.summary());
    return subject.own_kernels;
  }
  if (subject.own_kernels) {
    if (!problem.empty())
      log_warning("[self-test] our own kernels disagree on " + tested.place +
                  ": " + problem +
                  ". LibTorch's are tested in their place, and compute then, "
                  "slower");
    SelfTestSubject without = subject;
    without.own_kernels = false;
    return self_test_once(without, tested, comm, timeout_s, backends);
  }
  const std::string what =
      problem.empty()
          ? "the device of another rank computes wrongly; see its message"
          : formatted("{} computes wrongly. {}", tested.place, problem);
  throw DeviceError(
      "[self-test] {}. Hint: chexnet-train doctor shows both networks; another "
      "driver or variant (scripts/setup --cuda), or launch.device=cpu",
      what);
}

}  // namespace chexnet
