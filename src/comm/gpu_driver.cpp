// Which GPUs there are, what is against using them, and which library serves
// them. A separate file, because the tests link another one instead, whose GPUs
// are fake.
#include <cstdlib>
#include <sstream>

#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/machine/topology.hpp"

namespace chexnet {
namespace {

const CudaDriver& driver() {
  static const CudaDriver answer = ask_cuda_driver();
  return answer;
}

GpuFacts facts_of_host() {
  GpuFacts facts;
  facts.on_bus = static_cast<int>(read_machine({}).gpus.size());
  facts.of_job = batch_job(process_environment()).host_gpus;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    facts.visible_devices = visible;
  facts.driver = driver();
  return facts;
}

}  // namespace

const char* CudaLibrary::file_name() { return "libchexnet_cuda.so"; }

const GpuBuild& CudaLibrary::build() {
  static const GpuBuild known = [] {
    GpuBuild build{CHEXNET_CUDA_VARIANT, CHEXNET_CUDA_MAJOR, {}};
    std::istringstream words(CHEXNET_CUDA_ARCHITECTURES);
    for (std::string word; words >> word;) build.architectures.push_back(word);
    return build;
  }();
  return known;
}

int CudaLibrary::visible_gpus() {
  return static_cast<int>(driver().gpus.size());
}

GpuProblem CudaLibrary::problem_of_host() {
  return gpu_problem(facts_of_host(), build());
}

}  // namespace chexnet
