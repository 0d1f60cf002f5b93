// The three forms in which the engine keeps activations, and the type each
// computes and keeps parameters in.
#pragma once

#include <cstdint>
#include <type_traits>

namespace chexnet {

enum class Arithmetic { kFp64, kFp32, kBf16 };

struct Bf16 {  // upper half of an fp32
  uint16_t bits;
};

// Sums, parameters and gradients of parameters: fp32 for fp32 and bf16, fp64
// for fp64.
template <class S>
using Accumulator =
    std::conditional_t<std::is_same_v<S, double>, double, float>;

}  // namespace chexnet
