#include "chexnet/train/host_copy.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace chexnet {

// Pinned memory, or the copy would wait for the GPU at once. The host waits for
// the event, not the CUDA stream: later work goes on.
HostCopy::HostCopy(const at::Tensor& tensor) : values_(tensor.contiguous()) {
  const at::Device device = tensor.device();
  if (device.is_cpu()) return;
  const at::Tensor from = values_;
  values_ =
      at::empty(from.sizes(),
                at::TensorOptions().dtype(from.dtype()).pinned_memory(true));
  values_.copy_(from, true);
  const c10::impl::VirtualGuardImpl streams(device.type());
  copied_.emplace(device.type());
  copied_->record(streams.getStream(device));
}

const at::Tensor& HostCopy::wait() {
  if (copied_) copied_->synchronize();
  return values_;
}

}  // namespace chexnet
