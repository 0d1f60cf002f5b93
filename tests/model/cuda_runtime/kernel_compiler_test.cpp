// NVRTC needs no GPU. It comes by scripts/setup --dev or --gpu, or with a CUDA
// of the system.
#include "model/cuda/kernel_compiler.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"

using namespace chexnet;
using Catch::Matchers::Contains;

namespace {

std::string source_of(const std::string& name) {
  return read_text(source_file("src/model/cuda/kernels/") + name);
}

bool has_compiler() {
  const std::string name = "libnvrtc.so." + std::to_string(CHEXNET_CUDA_MAJOR);
  if (dlopen(name.c_str(), RTLD_NOW) != nullptr) return true;
  WARN("skipped: " + name + " is not here (scripts/setup --dev or --gpu)");
  return false;
}

std::string refusal(const std::string& source, const std::string& gpu) {
  try {
    compile_kernels(source, gpu, {"ELEMENT_FP32"});
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

// Of LibTorch's kernels, and what is nearest to them.
std::vector<std::string> architectures() {
  std::vector<std::string> all = {"sm_75", "sm_80", "sm_86",
                                  "sm_89", "sm_90", "sm_100"};
  all.emplace_back("sm_120");
  if (CHEXNET_CUDA_MAJOR < 13) all.emplace_back("sm_70");
  return all;
}

// What a thread of a kernel takes, or for shared memory its block.
struct Use {
  int registers = 0, shared_bytes = 0;
  int memory_bytes = 0;  // its stack, and what does not fit into registers
  void include(const Use& other) {
    registers = std::max(registers, other.registers);
    shared_bytes = std::max(shared_bytes, other.shared_bytes);
  }
};
// Of blocks of 512 threads one is to fit on each multiprocessor, which needs
// 128 registers at most: a kernel that takes all 128 may be short of some. And
// what a block may have without asking for more.
constexpr int kMostRegisters = 65536 / 512 - 2;
constexpr int kMostSharedBytes = 48 << 10;

int number_before(const std::string& line, const std::string& unit) {
  std::smatch found;
  return std::regex_search(line, found, std::regex("([0-9]+) " + unit))
             ? std::stoi(found[1])
             : 0;
}

// [kernel], from the words of ptxas.
std::map<std::string, Use> uses_of(const std::string& report) {
  std::map<std::string, Use> uses;
  std::istringstream lines(report);
  std::string line, kernel;
  std::smatch found;
  const std::regex of_kernel("Function properties for ([a-z0-9_]+)");
  while (std::getline(lines, line)) {
    if (std::regex_search(line, found, of_kernel)) kernel = found[1];
    if (line.find("spill") != std::string::npos)
      for (const auto* of : {"bytes stack", "bytes spill s", "bytes spill l"})
        uses[kernel].memory_bytes += number_before(line, of);
    if (line.find(" registers") == std::string::npos) continue;
    uses[kernel].registers = number_before(line, "registers");
    uses[kernel].shared_bytes = number_before(line, "bytes smem");
  }
  return uses;
}

}  // namespace

TEST_CASE("our kernels compile for every GPU and type of elements") {
  if (!has_compiler()) return;
  const std::map<std::string, std::vector<std::string>> kernels = {
      {"batch_norm.cu",
       {"batch_norm_statistics", "batch_norm_apply", "batch_norm_sums",
        "batch_norm_add_up", "batch_norm_corrected", "batch_norm_gradient",
        "batch_norm_max_pool", "batch_norm_max_pool_sums",
        "batch_norm_max_pool_gradient", "batch_norm_average_pool",
        "batch_norm_average_pool_add_up"}},
      {"moments.cu", {"merge_moments"}},
      {"relu.cu", {"relu_backward"}}};
  std::map<std::string, Use> most;
  for (const auto& [file, names] : kernels)
    for (const auto& gpu : architectures())
      for (const std::string element :
           {"ELEMENT_FP32", "ELEMENT_FP16", "ELEMENT_BF16"}) {
        // bf16 has another form from sm_80 on; fp16 takes the most registers
        // on sm_100 and sm_120.
        const bool telling = gpu == "sm_75" || gpu == "sm_90";
        const bool widest = gpu == "sm_100" || gpu == "sm_120";
        if (element == "ELEMENT_FP32" && !telling) continue;
        if (element == "ELEMENT_FP16" && !telling && !widest) continue;
        INFO(file << " for " << gpu << ", " << element);
        std::string report;
        const std::string code = compile_kernels(
            read_text(source_file("src/model/cuda/kernel_arguments.hpp")) +
                source_of("vectors.cu") + source_of(file) +
                (file == "batch_norm.cu" ? source_of("batch_norm_pool.cu")
                                         : ""),
            gpu, {element}, &report);
        for (const auto& [name, use] : uses_of(report)) {
          INFO(name);
          CHECK(use.registers <= kMostRegisters);
          CHECK(use.shared_bytes <= kMostSharedBytes);
          CHECK(use.memory_bytes == 0);
          most[name].include(use);
        }
        CHECK(
            code.starts_with("\x7f"
                             "ELF"));
        for (const auto& name : names)
          CHECK(code.find(".text." + name) != std::string::npos);
      }
  std::cout << "on any GPU: registers, bytes of shared memory\n";
  for (const auto& [name, use] : most)
    std::cout << std::left << std::setw(32) << name << std::right
              << std::setw(4) << use.registers << std::setw(7)
              << use.shared_bytes << "\n";
  CHECK(most.size() == 13);
}

TEST_CASE("what the compiler refuses is told in its words") {
  if (!has_compiler()) return;
  CHECK_THAT(refusal("void f() { missing(); }", "sm_90"),
             Contains("[kernels] ") && Contains("\"missing\" is undefined"));
  CHECK_THAT(refusal("", "sm_1"), Contains("invalid value"));
}
