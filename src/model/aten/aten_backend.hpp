// LibTorch's operators as a back end: the reference, and what computes on GPUs
// and in fp16.
#pragma once

#include <memory>

#include "chexnet/model/backend.hpp"

namespace chexnet {

std::unique_ptr<Backend> make_aten_backend(const BackendContext& context);

}  // namespace chexnet
