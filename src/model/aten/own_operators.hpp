// What GPUs compute by kernels of our own, as operators of LibTorch's
// dispatcher: profilers and audits see them, and each kind of device may bring
// kernels. libchexnet_cuda.so brings those of src/model/cuda/kernels. On the
// CPU, and where `kernels` is false, they are ATen's operators one after the
// other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace chexnet {

constexpr double kBatchNormEpsilon = 1e-5;  // torchvision's

// Whether kernels of our own take such a map on its device: channels-last, in
// fp32, fp16 or bf16, pixels of whole 16 bytes, less than 32 GiB.
bool own_kernels_take(const at::Tensor& x);

// As our kernels take gradients: channels-last, a copy where it is not.
at::Tensor dense(const at::Tensor& dy);

// y += shortcut, then ReLU, in place and by ATen's operators.
void add_and_cut(at::Tensor& y, const std::optional<at::Tensor>& shortcut,
                 bool relu);

// BatchNorm of x [N,C,H,W]; weight, bias and what is per channel [C] in the
// master type.
struct BatchNormInput {
  at::Tensor x, weight, bias;
  bool relu = false;
};

// y = BatchNorm(x) (+ shortcut), then ReLU; mean and 1 / sqrt(variance + 1e-5)
// of the map; and kept = (1 - momentum) * kept + momentum * new of mean and
// unbiased variance.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_training(
    const BatchNormInput& input, at::Tensor& kept_mean, at::Tensor& kept_var,
    double momentum, const std::optional<at::Tensor>& shortcut);

// The same by statistics that are given.
at::Tensor batch_norm_inference(const BatchNormInput& input,
                                const at::Tensor& mean, const at::Tensor& var,
                                const std::optional<at::Tensor>& shortcut,
                                bool kernels);

// dx (+ more), dweight, dbias of BatchNorm and ReLU, without a shortcut; x
// tells where ReLU cut. `more` has dx's shape, rows of pixels may be further
// apart.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_gradients(
    const at::Tensor& dy, const BatchNormInput& input, const at::Tensor& mean,
    const at::Tensor& invstd, const std::optional<at::Tensor>& more);

// Windows of 3x3, two apart, one pixel beyond each edge. Which pixel of its
// window each value is, in the device's own form, goes back with the gradient;
// `shape` and `format` are x's: a gradient of one pixel does not tell them.
std::tuple<at::Tensor, at::Tensor> max_pool(const at::Tensor& x, bool kernels);
at::Tensor max_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                             at::MemoryFormat format, const at::Tensor& chosen,
                             bool kernels);

// Windows of 2x2, two apart.
at::Tensor average_pool(const at::Tensor& x, bool kernels);
at::Tensor average_pool_gradient(const at::Tensor& dy, at::IntArrayRef shape,
                                 at::MemoryFormat format, bool kernels);

// dy (+ more) where y > 0, else 0.
at::Tensor relu_gradient(const at::Tensor& dy,
                         const std::optional<at::Tensor>& more,
                         const at::Tensor& y, bool kernels);

}  // namespace chexnet
