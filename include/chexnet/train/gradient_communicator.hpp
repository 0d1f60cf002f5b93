// Over which library the gradients of ranks travel.
#pragma once

#include <memory>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/nccl_log.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

// For `device`: NCCL around `host` on a GPU, else `host` itself. A single GPU
// needs no NCCL, but waits with a deadline. `transports` gets how NCCL connects
// all ranks, where it does; null: not wanted.
std::unique_ptr<Communicator> gradient_communicator(
    std::unique_ptr<Communicator> host, const Device& device,
    const LaunchConfig& config, NcclReport* transports = nullptr);

}  // namespace chexnet
