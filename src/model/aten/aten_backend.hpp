// LibTorch's operators as a back end: the reference, and the one for GPUs and
// fp16.
#pragma once

#include <memory>

#include "chexnet/model/backend.hpp"

namespace chexnet {

std::unique_ptr<Backend> make_aten_backend(const BackendContext& context);

}  // namespace chexnet
