// Each set is compiled with its own compiler flags (src/CMakeLists.txt) and
// called only where the processor has its instructions. A later entry of the
// list is a wider one, and the last is taken unless the caller names another,
// or the environment variable does that also limits LibTorch's operators: with
// it a processor computes as one without the wider sets would.
#include "kernels/kernels.hpp"

#include "chexnet/core/text_format.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include <cstdlib>
#include <vector>

#include "chexnet/core/error.hpp"
#include "kernels/sets.hpp"

namespace chexnet {
namespace {

constexpr const char* kLimitVariable = "ATEN_CPU_CAPABILITY";

struct Available {
  std::string name;
  KernelSet set;
};

// Ascending.
std::vector<Available> available() {
  std::vector<Available> list(1);
  list[0].name = "generic";
  generic_kernels(list[0].set);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    list.push_back({"avx2", {}});
    avx2_kernels(list.back().set);
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    list.push_back({"avx512", {}});
    avx512_kernels(list.back().set);
    if (__builtin_cpu_supports("avx512bf16")) {
      list.push_back({"avx512bf16", list.back().set});
      avx512bf16_kernels(list.back().set);
    }
  }
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0) {
    list.push_back({"neonbf16", list.back().set});
    neonbf16_kernels(list.back().set);
  }
  // The size of SVE's registers is part of the set; others stay with NEON.
  const int length = prctl(PR_SVE_GET_VL);
  if ((getauxval(AT_HWCAP) & HWCAP_SVE) != 0 &&
      (getauxval(AT_HWCAP2) & HWCAP2_SVEBF16) != 0 &&
      (length & PR_SVE_VL_LEN_MASK) == 32) {
    list.push_back({"sve256", {}});
    sve256_kernels(list.back().set);
  }
#endif
  return list;
}

const std::vector<Available>& known_sets() {
  static const std::vector<Available> list = available();
  return list;
}

// The set that the environment names; "" for none. Other processors than x86-64
// have other names in it.
std::string limit() {
#if defined(__x86_64__)
  if (const char* value = std::getenv(kLimitVariable); value != nullptr)
    return value == std::string("default") ? "generic" : value;
#endif
  return "";
}

const KernelSet& chosen(const std::string& asked) {
  const std::vector<Available>& list = known_sets();
  const std::string wanted = asked.empty() ? limit() : asked;
  if (wanted.empty()) return list.back().set;
  std::string known;
  for (const auto& entry : list) {
    if (entry.name == wanted) return entry.set;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw ConfigError(
      "[engine] no instruction set '{}' on this processor. Hint: it has {}{}",
      wanted, known,
      asked.empty()
          ? formatted("; {} is default, avx2 or avx512", kLimitVariable)
          : "");
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const auto& entry : known_sets()) names.push_back(entry.name);
  return names;
}

template <>
const Kernels<float>& kernels<float>(const std::string& wanted) {
  return chosen(wanted).fp32;
}
template <>
const Kernels<Bf16>& kernels<Bf16>(const std::string& wanted) {
  return chosen(wanted).bf16;
}
template <>
const Kernels<double>& kernels<double>(const std::string& wanted) {
  return chosen(wanted).fp64;
}

}  // namespace chexnet
