// A buffer is filled again two uploads later. By then the step that reads it is
// launched, but maybe not computed: the upload between the two records
// `computed` after that step, and the copy waits for it on the device.
#include "batch_upload.hpp"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>

namespace chexnet {
namespace {

void record(std::optional<c10::Event>& event, const c10::Stream& stream) {
  if (!event) event.emplace(stream.device_type());
  event->record(stream);
}

// One CUDA stream per device for the whole process: LibTorch's pool of 32 goes
// round, and would come to the stream that computes.
c10::Stream copy_stream(at::Device device) {
  static std::map<c10::DeviceIndex, c10::Stream> streams;
  const auto known = streams.find(device.index());
  if (known != streams.end()) return known->second;
  const c10::impl::VirtualGuardImpl guard(device.type());
  return streams.emplace(device.index(), guard.getStreamFromGlobalPool(device))
      .first->second;
}

}  // namespace

BatchUpload::BatchUpload(at::Device device) : device_(device) {
  if (device.is_cpu()) return;
  copies_ = copy_stream(device);
}

bool BatchUpload::fit(Buffer& buffer, const BatchTensors& host) const {
  const auto fits = [](const at::Tensor& t, const at::Tensor& like) {
    return t.defined() == like.defined() &&
           (!t.defined() || t.sizes() == like.sizes());
  };
  BatchTensors& there = buffer.there;
  if (fits(there.images, host.images) && fits(there.labels, host.labels) &&
      fits(there.sample_weights, host.sample_weights))
    return false;
  const auto on_device = [&](const at::Tensor& like) {
    return like.defined() ? at::empty_like(like, at::device(device_))
                          : at::Tensor();
  };
  const auto pinned = [](const at::Tensor& like) {
    return like.defined()
               ? at::empty(like.sizes(), like.options().pinned_memory(true))
               : at::Tensor();
  };
  there = {on_device(host.images), on_device(host.labels),
           on_device(host.sample_weights)};
  buffer.here = {{}, pinned(host.labels), pinned(host.sample_weights)};
  return true;
}

BatchTensors BatchUpload::upload(const BatchTensors& host) {
  if (!copies_) return host;
  const c10::impl::VirtualGuardImpl streams(device_.type());
  const c10::Stream compute = streams.getStream(device_);
  Buffer& buffer = buffers_[next_];
  Buffer& other = buffers_[1 - next_];
  next_ = 1 - next_;
  // Its last copy ended long ago; this is for a caller that does not wait().
  if (buffer.copied) buffer.copied->synchronize();
  // New memory belongs to the compute stream: kernels launched there earlier
  // may still use it for its former tensor.
  if (fit(buffer, host)) record(buffer.computed, compute);
  const BatchTensors &here = buffer.here, &there = buffer.there;
  here.labels.copy_(host.labels);
  if (host.sample_weights.defined())
    here.sample_weights.copy_(host.sample_weights);
  // All work that reads the other buffer is launched.
  if (other.copied) record(other.computed, compute);
  if (buffer.computed) buffer.computed->block(*copies_);
  {
    const c10::StreamGuard guard(*copies_);
    there.images.copy_(host.images, true);
    there.labels.copy_(here.labels, true);
    if (host.sample_weights.defined())
      there.sample_weights.copy_(here.sample_weights, true);
  }
  record(buffer.copied, *copies_);
  buffer.copied->block(compute);
  return there;
}

void BatchUpload::wait() {
  const Buffer& last = buffers_[1 - next_];
  if (last.copied) last.copied->synchronize();
}

}  // namespace chexnet
