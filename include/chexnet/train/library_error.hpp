// What LibTorch throws, and the libraries under it, as one sentence for people.
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <string>

#include "chexnet/config/config.hpp"

namespace chexnet {

// Cause and remedy of any error of LibTorch's: memory, the GPU, cuDNN and
// cuBLAS, or an operator.
std::string library_error_text(const c10::Error& error);

// For a training step of `images` images of this rank, of a global batch of
// `batch`: what did not fit, and what to set.
std::string out_of_memory_text(const c10::OutOfMemoryError& error,
                               const TrainConfig& config, int64_t batch,
                               int64_t images);

}  // namespace chexnet
