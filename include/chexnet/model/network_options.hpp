// Precision, device and back ends of a network. Fixed when it is made.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/choices.hpp"
#include "chexnet/model/engine/storage.hpp"

namespace chexnet {

at::ScalarType master_type(Precision precision);  // float, or double for kFp64
at::ScalarType compute_type(Precision precision);
Arithmetic arithmetic_of(Precision precision);  // the engine's; not kFp16

struct NetworkOptions {
  at::Device device = at::kCPU;
  Precision precision = Precision::kFp32;
  // Ranks that share batch statistics; null: none.
  Communicator* sync_batchnorm = nullptr;
  // Up to where the network is in inference mode and gets no gradients: its
  // BatchNorms use their running statistics, which stay as they are.
  FrozenPart frozen = FrozenPart::kNone;
  // False: ATen operators alone: no engine on a CPU, no kernels of our own on a
  // GPU.
  bool own_engine = true;
  bool winograd = true;
  // GPUs: BatchNorm's results are not kept for backward but computed again:
  // less memory, more time, the same bits. Where our own kernels compute.
  bool recompute = false;
  bool deterministic = false;  // GPUs: the same bits each time
  std::vector<double> mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
};

// Whether the engine may compute images of some size.
bool engine_may_compute(const NetworkOptions& options);
// Of convolutions' weights: row-major where the engine reads them, and in fp64;
// else as ATen's operators take them without a copy.
at::MemoryFormat weight_format(const NetworkOptions& options);
// Of activations of ATen's layers. PyTorch's fp64 convolutions know only NCHW;
// elsewhere channels-last is faster on CPU and GPU.
at::MemoryFormat activation_format(Precision precision);

}  // namespace chexnet
