// BatchNorm with what stands around it, as operators of LibTorch's dispatcher:
// profilers and audits see them, and each kind of device may bring its own
// kernels. libchexnet_cuda.so brings those of src/cuda/kernels. On the CPU they
// are ATen's operators one after the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace chexnet {

// What all of them take: x [N,C,H,W]; weight, bias and what is per channel [C]
// in the master type.
struct BatchNormInput {
  at::Tensor x, weight, bias;
  bool relu = false;
};

// Whether kernels of our own take such a map on its device: channels-last, in
// fp32, fp16 or bf16, rows of whole 16 bytes.
bool batch_norm_kernels_take(const at::Tensor& x);

// y = BatchNorm(x) (+ shortcut), then ReLU; mean and 1 / sqrt(variance + 1e-5)
// of the map; and kept = (1 - momentum) * kept + momentum * new of mean and
// unbiased variance.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_training(
    const BatchNormInput& input, at::Tensor& kept_mean, at::Tensor& kept_var,
    double momentum, const std::optional<at::Tensor>& shortcut);

// The same by statistics that are given.
at::Tensor batch_norm_inference(const BatchNormInput& input,
                                const at::Tensor& mean, const at::Tensor& var,
                                const std::optional<at::Tensor>& shortcut);

// dx (+ more), dweight, dbias of BatchNorm and ReLU, without a shortcut. `y` is
// what forward gave, where there is a ReLU. `more` has dx's shape, rows of
// pixels may be further apart.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_gradients(
    const at::Tensor& dy, const BatchNormInput& input,
    const std::optional<at::Tensor>& y, const at::Tensor& mean,
    const at::Tensor& invstd, const std::optional<at::Tensor>& more);

}  // namespace chexnet
