// Over which library the gradients of ranks travel.
#pragma once

#include <memory>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

// For `device`: NCCL around `host` on a GPU with several ranks, else
// `host` itself.
std::unique_ptr<Communicator> gradient_communicator(
    std::unique_ptr<Communicator> host, const Device& device,
    const LaunchConfig& config);

}  // namespace chexnet
