// Exceptions of LibTorch and of the libraries under it, as one sentence for
// people.
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <optional>
#include <string>

#include "chexnet/config/config.hpp"

namespace chexnet {

// Cause and remedy of any error of LibTorch's: memory, the GPU, cuDNN and
// cuBLAS, or an operator.
std::string library_error_text(const c10::Error& error);

// A training step that did not fit.
struct FullStep {
  int64_t batch = 0;   // of all ranks
  int64_t images = 0;  // of this rank, in all parts of the step
  int ranks = 1;
  std::optional<int64_t> fitting;  // images at once, where they were measured
  bool can_recompute = false;      // model.memory=recompute would help
};

// What did not fit, and what to set.
std::string out_of_memory_text(const c10::OutOfMemoryError& error,
                               const TrainConfig& config, const FullStep& step);

}  // namespace chexnet
