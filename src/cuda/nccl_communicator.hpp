// The communicator whose gradients travel over NCCL.
#pragma once

#include <memory>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// Collective. Gradients on GPU `device` of this process; the control plane
// through `host`. HangError when NCCL does not answer within `timeout_s`.
std::unique_ptr<Communicator> make_nccl_communicator(
    std::unique_ptr<Communicator> host, int device, double timeout_s);

}  // namespace chexnet
