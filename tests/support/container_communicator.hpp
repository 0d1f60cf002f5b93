// A rank that does not see the processes of the others on its host, as in a
// separate container.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "support/forwarding_communicator.hpp"

namespace chexnet {

class ContainerCommunicator final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  // A path below /proc is of nothing here.
  std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte> bytes) override {
    auto all = ForwardingCommunicator::all_gather(bytes);
    for (auto& one : all) {
      const std::string text(reinterpret_cast<const char*>(one.data()),
                             one.size());
      if (const auto at = text.find("/proc/"); at != std::string::npos)
        one[at + 1] = std::byte{'q'};
    }
    return all;
  }
};

}  // namespace chexnet
