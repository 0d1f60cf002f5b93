// Cheap questions first: LibTorch's CUDA side is loaded (0.4 s, 560 MB) only
// where bus, batch job and driver allow it; the CUDA runtime decides last.
#include "chexnet/comm/cuda_library.hpp"

#include <cstdlib>
#include <filesystem>

#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/plugin.hpp"

namespace chexnet {
namespace {

// A bundle has no scripts/setup; an installed program has it where it was
// built.
std::string missing_libraries_hint() {
  const auto& build = CudaLibrary::build();
  if (std::getenv("CHEXNET_TORCH") != nullptr)  // a bundle's `run` sets it
    return formatted(
        "what a GPU run loads comes with a Python's torch for CUDA {}: run "
        "--torch …/site-packages/torch{}",
        build.cuda_major, kOrOnCpu);
  const auto sources =
      std::filesystem::path(program_folder()) / "../../scripts/setup";
  return formatted(
      "a set-up on a machine without a GPU leaves out what a GPU run loads: "
      "scripts/setup --gpu --cuda {}{}{}",
      build.variant,
      std::filesystem::exists(sources) ? "" : " where it was built", kOrOnCpu);
}

// The library, or why it cannot be opened. It asks the driver for nothing yet.
GpuAccess load_library() {
  try {
    static const Plugin plugin(CudaLibrary::file_name());
    return {reinterpret_cast<CudaLibrary* (*)()>(
                plugin.symbol("chexnet_cuda_library"))(),
            {}};
  } catch (const MissingLibraryError& e) {
    return {nullptr, {e.happened, missing_libraries_hint()}};
  } catch (const PluginError& e) {
    return {nullptr, {e.happened, e.hint + kOrOnCpu}};
  }
}

GpuAccess open_library() {
  const GpuProblem problem = CudaLibrary::problem_of_host();
  if (!problem.empty() || CudaLibrary::visible_gpus() == 0)
    return {nullptr, problem};
  GpuAccess access = load_library();
  if (access.library == nullptr) return access;
  access.problem = access.library->problem();
  if (!access.problem.empty()) access.library = nullptr;
  return access;
}

}  // namespace

GpuProblem CudaLibrary::problem_elsewhere() {
  return build().cuda_major == 0 ? GpuProblem{} : load_library().problem;
}

const GpuAccess& CudaLibrary::access() {
  static const GpuAccess found = open_library();
  return found;
}

}  // namespace chexnet
