// The source of our kernels on the CPU, a namespace for each type of elements,
// and vectors of those types.
#pragma once

#include "fakes/cuda_kernels.hpp"
#include "model/cuda/kernel_arguments.hpp"
// Words first, then the kernels that use them.
#include <algorithm>
#include <vector>

namespace chexnet {
namespace {

namespace fp32 {
using namespace cuda_words;
#define ELEMENT_FP32
#include "model/cuda/kernels/vectors.cu"
//
#include "model/cuda/kernels/batch_norm.cu"
//
#include "model/cuda/kernels/batch_norm_pool.cu"
#include "model/cuda/kernels/moments.cu"
#include "model/cuda/kernels/relu.cu"
#undef ELEMENT_FP32
}  // namespace fp32
namespace fp16 {
using namespace cuda_words;
#define ELEMENT_FP16
#include "model/cuda/kernels/vectors.cu"
//
#include "model/cuda/kernels/batch_norm.cu"
//
#include "model/cuda/kernels/batch_norm_pool.cu"
#include "model/cuda/kernels/moments.cu"
#include "model/cuda/kernels/relu.cu"
#undef ELEMENT_FP16
}  // namespace fp16
namespace bf16 {
using namespace cuda_words;
#define ELEMENT_BF16
#include "model/cuda/kernels/vectors.cu"
//
#include "model/cuda/kernels/batch_norm.cu"
//
#include "model/cuda/kernels/batch_norm_pool.cu"
#include "model/cuda/kernels/moments.cu"
#include "model/cuda/kernels/relu.cu"
#undef ELEMENT_BF16
}  // namespace bf16

using Values = std::vector<float>;

// Floats to vectors and back.
template <class Vector, int kWidth, auto kRead, auto kWritten>
struct Elements {
  static std::vector<Vector> encoded(const Values& values) {
    std::vector<Vector> out;
    for (size_t i = 0; i < values.size(); i += kWidth) {
      float part[kWidth];
      std::copy_n(values.data() + i, kWidth, part);
      out.push_back(kWritten(part));
    }
    return out;
  }
  static Values decoded(const std::vector<Vector>& vectors) {
    Values out;
    for (const Vector& vector : vectors) {
      float part[kWidth];
      kRead(vector, part);
      out.insert(out.end(), part, part + kWidth);
    }
    return out;
  }
};

// Macros: a namespace is no template argument.
#define ELEMENTS(space)                                            \
  Elements<space::Vector, space::kWidth,                           \
           [](const space::Vector& v, float(&to)[space::kWidth]) { \
             space::read(v, to);                                   \
           },                                                      \
           [](const float(&from)[space::kWidth]) {                 \
             return space::packed(from);                           \
           }>

}  // namespace
}  // namespace chexnet
