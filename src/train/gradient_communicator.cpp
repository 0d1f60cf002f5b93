// NCCL carries gradients only. Everything else between ranks stays with the
// communicator that it is built around, so one process has one order of
// collectives.
#include "chexnet/train/gradient_communicator.hpp"

#include <cassert>
#include <optional>
#include <utility>

#include "chexnet/comm/nccl_recording.hpp"

namespace chexnet {

std::unique_ptr<Communicator> gradient_communicator(
    std::unique_ptr<Communicator> host, const Device& device,
    const LaunchConfig& config, NcclReport* transports) {
  assert(host != nullptr);
  if (device.cuda == nullptr) return host;
  std::optional<NcclRecording> recording;
  if (transports != nullptr && host->size() > 1) recording.emplace();
  auto comm = device.cuda->make_nccl(std::move(host), device.where.index(),
                                     config.timeout_s);
  if (recording)
    *transports = recording->read(
        *comm, config.network.kind != NetworkChoice::Kind::kTcp);
  return comm;
}

}  // namespace chexnet
