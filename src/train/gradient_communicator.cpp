// NCCL carries gradients only. Everything else between ranks stays with the
// communicator that it is built around, so one process has one order of
// collectives.
#include "chexnet/train/gradient_communicator.hpp"

#include <cassert>
#include <utility>

namespace chexnet {

std::unique_ptr<Communicator> gradient_communicator(
    std::unique_ptr<Communicator> host, const Device& device,
    const LaunchConfig& config) {
  assert(host != nullptr);
  if (device.cuda == nullptr) return host;
  return device.cuda->make_nccl(std::move(host), device.where.index(),
                                config.timeout_s);
}

}  // namespace chexnet
