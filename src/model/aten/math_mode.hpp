// How LibTorch computes on GPUs, for the whole process.
#pragma once

#include "chexnet/model/network_options.hpp"

namespace chexnet {

// Rounding of factors by the precision, choice of kernels by `deterministic`.
void set_math_mode(const NetworkOptions& options);

}  // namespace chexnet
