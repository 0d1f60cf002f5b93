// The CPU engine as a back end: one engine for training and one for inference
// in the same memory.
#pragma once

#include <memory>
#include <string>

#include "chexnet/model/backend.hpp"

namespace chexnet {

std::string engine_backend_refusal(const BackendContext& context,
                                   int64_t height, int64_t width);
std::unique_ptr<Backend> make_engine_backend(const BackendContext& context);

}  // namespace chexnet
