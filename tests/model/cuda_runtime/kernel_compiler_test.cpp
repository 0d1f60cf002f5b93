// NVRTC needs no GPU. It comes with the libraries of scripts/setup --gpu, or
// with a CUDA of the system.
#include "model/cuda/kernel_compiler.hpp"

#include <dlfcn.h>

#include <map>
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
  WARN("skipped: " + name + " is not here (scripts/setup --gpu)");
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

// Of LibTorch's own kernels, and what is nearest to them.
std::vector<std::string> architectures() {
  std::vector<std::string> all = {"sm_75", "sm_80", "sm_86",
                                  "sm_89", "sm_90", "sm_100"};
  all.emplace_back(CHEXNET_CUDA_MAJOR < 13 ? "sm_70" : "sm_120");
  return all;
}

}  // namespace

TEST_CASE("our kernels compile for every GPU and type of elements") {
  if (!has_compiler()) return;
  const std::map<std::string, std::vector<std::string>> kernels = {
      {"batch_norm.cu",
       {"batch_norm_statistics", "batch_norm_apply", "batch_norm_sums",
        "batch_norm_gradient"}},
      {"moments.cu", {"merge_moments"}},
      {"pool.cu",
       {"max_pool_forward", "max_pool_backward", "average_pool_forward",
        "average_pool_backward", "relu_backward"}}};
  for (const auto& [file, names] : kernels)
    for (const auto& gpu : architectures())
      for (const std::string element :
           {"ELEMENT_FP32", "ELEMENT_FP16", "ELEMENT_BF16"}) {
        // bf16 has another form from sm_80 on; of the others two are enough.
        const bool telling = gpu == "sm_75" || gpu == "sm_90";
        if (!telling && element != "ELEMENT_BF16") continue;
        INFO(file << " for " << gpu << ", " << element);
        const std::string code = compile_kernels(
            source_of("vectors.cu") + source_of(file), gpu, {element});
        CHECK(
            code.starts_with("\x7f"
                             "ELF"));
        for (const auto& name : names)
          CHECK(code.find(".text." + name) != std::string::npos);
      }
}

TEST_CASE("what the compiler refuses is told in its words") {
  if (!has_compiler()) return;
  CHECK_THAT(refusal("void f() { missing(); }", "sm_90"),
             Contains("[kernels] ") && Contains("\"missing\" is undefined"));
  CHECK_THAT(refusal("", "sm_1"), Contains("invalid value"));
}
