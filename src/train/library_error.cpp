// LibTorch's errors differ in type only for memory and for the device; cuDNN's,
// cuBLAS's and the CPU allocator's can be told apart only by their text.
#include "chexnet/train/library_error.hpp"

#include <array>
#include <cassert>
#include <string_view>

#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

// The cause alone: without LibTorch's advice on its allocator and without the
// lines of its sources.
std::string cause_of(const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  text = text.substr(0, text.find('\n'));
  for (const char* advice : {" Including non-PyTorch memory", " Process ",
                             " Of the allocated memory", " If reserved"})
    text = text.substr(0, text.find(advice));
  while (!text.empty() && (text.back() == '.' || text.back() == ' '))
    text.pop_back();
  return text;
}

struct Remedy {
  const char *part, *remedy;
};
// The first whose part is in the cause counts.
constexpr std::array kRemedies = {
    Remedy{"DefaultCPUAllocator",
           "the host's memory is full: lower train.batch, data.prefetch or the "
           "number of ranks"},
    Remedy{"no kernel image",
           "this LibTorch has no code for this GPU: scripts/setup --gpu --cuda "
           "cuda12 for V100, a newer LibTorch for newer GPUs"},
    Remedy{"CUDNN_STATUS_NOT_INITIALIZED",
           "the GPU's memory is full, or cuDNN is of another version: lower "
           "train.batch; LD_LIBRARY_PATH must not name another cuDNN"},
    Remedy{"ALLOC_FAILED", "the GPU's memory is full: lower train.batch"},
    Remedy{"cuDNN",
           "LD_LIBRARY_PATH must not name another cuDNN; else a smaller "
           "train.batch, or another GPU: dmesg shows Xid errors"},
    Remedy{"CUBLAS",
           "LD_LIBRARY_PATH must not name another cuBLAS; else dmesg shows Xid "
           "errors of this GPU"},
    Remedy{"CUDA error",
           "dmesg shows Xid errors of this GPU; `doctor` looks at it; with "
           "CUDA_LAUNCH_BLOCKING=1 the next error names its operator"}};

std::string remedy_of(const std::string& cause) {
  for (const auto& known : kRemedies)
    if (cause.find(known.part) != std::string::npos) return known.remedy;
  return "`doctor` compares LibTorch with the one of the build; "
         "train.precision "
         "and train.engine choose other operators";
}

// The same batch in the fewest parts of at most `most` images.
std::string in_parts(const FullStep& step, int64_t most) {
  int64_t parts = (step.images + most - 1) / most;
  while (step.images % parts != 0) ++parts;
  return formatted("train.accumulate={} computes the same batch in parts of {}",
                   parts, counted(step.images / parts, "image"));
}

std::string smaller_step(const TrainConfig& config, const FullStep& step,
                         int64_t at_once) {
  std::string one_image =
      "a smaller data.crop, or another process is on this GPU (nvidia-smi)";
  if (at_once <= 1 || step.fitting == 0) return one_image;
  if (step.fitting && *step.fitting < at_once) {
    const int64_t batch = *step.fitting * config.accumulate * step.ranks;
    return formatted("{} at once fit: train.batch={}, or {}",
                     counted(*step.fitting, "image"), batch,
                     in_parts(step, *step.fitting));
  }
  return in_parts(step, at_once / 2) + "; " +
         (config.batch ? "train.batch=auto finds the largest that fits"
                       : "auto came too close to the limit: name a smaller "
                         "train.batch");
}

}  // namespace

std::string library_error_text(const c10::Error& error) {
  const std::string cause = cause_of(error);
  const bool memory =
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
  return formatted(
      "[libtorch] {}: {}. Hint: {}", host_name(), cause,
      memory ? "lower train.batch or eval.batch, or leave the GPU to this "
               "rank alone (nvidia-smi)"
             : remedy_of(cause));
}

std::string out_of_memory_text(const c10::OutOfMemoryError& error,
                               const TrainConfig& config,
                               const FullStep& step) {
  assert(step.images > 0 && config.accumulate > 0);
  const int64_t at_once = step.images / config.accumulate;
  return formatted(
      "[memory] {}: the GPU has no room for a step of {} (train.batch={}, "
      "train.accumulate={}): {}. Hint: {}",
      host_name(), counted(at_once, "image"), step.batch, config.accumulate,
      cause_of(error),
      smaller_step(config, step, at_once) +
          (step.can_recompute
               ? "; model.memory=recompute takes less memory for the same bits"
               : ""));
}

}  // namespace chexnet
