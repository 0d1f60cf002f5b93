// A tensor on its way from the device to the host: the copy is launched after
// the work that the compute stream has already, and the host goes on. On the
// CPU it is there at once.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace chexnet {

// One thread. May go before the copy has ended.
class HostCopy {
 public:
  explicit HostCopy(const at::Tensor& tensor);
  // The values, contiguous in the host's memory. Waits for the device.
  const at::Tensor& wait();

 private:
  at::Tensor values_;
  std::optional<c10::Event> copied_;
};

}  // namespace chexnet
