#include "chexnet/launch/machine/affinity.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

namespace chexnet {
namespace {
constexpr int kMostCpus = 8192;
using CpuSet = std::unique_ptr<cpu_set_t, decltype(&__sched_cpufree)>;
CpuSet empty_set() {
  CpuSet set(CPU_ALLOC(kMostCpus), __sched_cpufree);
  CPU_ZERO_S(CPU_ALLOC_SIZE(kMostCpus), set.get());
  return set;
}
}  // namespace

std::vector<int> allowed_cpus() {
  const CpuSet set = empty_set();
  const size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  sched_getaffinity(0, bytes, set.get());
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu)
    if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get()))
      cpus.push_back(cpu);
  return cpus;
}

std::vector<int> bind_process(const std::vector<int>& cpus) {
  const CpuSet set = empty_set();
  const size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  for (const int cpu : cpus)
    CPU_SET_S(static_cast<size_t>(cpu), bytes, set.get());
  std::error_code error;
  // MPI's progress threads exist already; later threads inherit from the main
  // one.
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task", error))
    sched_setaffinity(std::atoi(task.path().filename().c_str()), bytes,
                      set.get());
  // A launcher may have left a policy that prefers the node it chose.
  syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL);
  return allowed_cpus();
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]) +
            (last > i ? "-" + std::to_string(cpus[last]) : "");
    i = last + 1;
  }
  return text;
}

}  // namespace chexnet
