// A loader's batch as tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "chexnet/data/loader.hpp"

namespace chexnet {

struct BatchTensors {
  at::Tensor images;               // uint8 [n,1,S,S]
  at::Tensor labels;               // float [n,K], NaN = not labeled
  at::Tensor sample_weights = {};  // float [n,1] of the loss; undefined = 1
};

// Views of the batch's memory on the host: valid as long as the batch is, and
// read only.
BatchTensors tensors_of(const Batch& batch);

}  // namespace chexnet
