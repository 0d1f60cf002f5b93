// LibTorch's defaults round the factors of fp32 convolutions to TF32, and take
// the kernels that cuDNN's table suggests, which may sum in any order.
#include "math_mode.hpp"

#include <ATen/Context.h>

namespace chexnet {

void set_math_mode(const NetworkOptions& options) {
  at::Context& library = at::globalContext();
  const bool rounds = options.precision == Precision::kTf32;
  library.setAllowTF32CuDNN(rounds);
  library.setAllowTF32CuBLAS(rounds);
  // Shapes are always the same, so one measurement stays true.
  library.setBenchmarkCuDNN(!options.deterministic);
  library.setDeterministicCuDNN(options.deterministic);
}

}  // namespace chexnet
