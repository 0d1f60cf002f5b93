// The operators that a device must have itself: making tensors, views of their
// memory in another shape, and copies between it and the host. The rest falls
// back.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/unfold_cpu_dispatch.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "fakes/fake_cudart/watch.hpp"
#include "fakes/fake_gpu/allocator.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "fakes/fake_gpu/fallback.hpp"
#include "fakes/fake_gpu/memory.hpp"

namespace fake_gpu {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device> device,
                 std::optional<bool>,
                 std::optional<at::MemoryFormat> memory_format) {
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_generic(size, device_allocator(), kKeys,
                                   c10::dtype_or_default(type), memory_format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<at::ScalarType> type,
                         std::optional<at::Layout>,
                         std::optional<at::Device> device,
                         std::optional<bool>) {
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_strided_generic(size, stride, device_allocator(),
                                           kKeys, c10::dtype_or_default(type));
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}
at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size,
                         c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                    C10_AS_INTARRAYREF_SLOW(stride));
}
const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef size,
                         std::optional<at::MemoryFormat> memory_format) {
  resize_tensor(self, C10_AS_INTARRAYREF_SLOW(size), memory_format);
  return self;
}

uint64_t hash_of(const at::Tensor& host) {
  const at::Tensor bytes = host.contiguous().view({-1}).view(at::kByte);
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (int64_t i = 0; i < bytes.numel(); ++i)
    hash = (hash ^ bytes.const_data_ptr<uint8_t>()[i]) * 0x100000001b3u;
  return hash;
}

// How long a copy from pinned memory takes; FAKE_GPU_COPY_US.
void take_time() {
  static const char* const text = std::getenv("FAKE_GPU_COPY_US");
  if (text != nullptr)
    std::this_thread::sleep_for(std::chrono::microseconds(std::atoi(text)));
}

// The host must leave a pinned source alone until its copy has ended.
void copy_pinned(const TensorView& target, const TensorView& view,
                 uint64_t hash) {
  take_time();
  const at::Tensor source = view.for_kernel();
  target.for_kernel().copy_(source);
  if (hash_of(source) != hash)
    found(
        "the host wrote to pinned memory before its copy to the device had "
        "ended");
}

// Pageable memory of the host is read before the call returns, as CUDA does;
// pinned memory when the stream comes to it. The host waits where the caller
// wants to, and for more pageable memory than the driver stages.
constexpr int64_t kStaged = 64 << 10;
void copy_to_device(const at::Tensor& from, const at::Tensor& to,
                    bool non_blocking) {
  const TensorView target(to);
  if (!is_pinned(from.const_data_ptr())) {
    const at::Tensor staged = from.clone();
    launch("a copy from pageable memory", {target.range(Use::kWrite)},
           [target, staged] { target.for_kernel().copy_(staged); });
    if (!non_blocking || from.nbytes() > kStaged) wait_for_current_stream();
    return;
  }
  const TensorView view(from);
  launch("a copy from pinned memory",
         {target.range(Use::kWrite), view.range(Use::kRead)},
         [target, view, hash = hash_of(from)] {
           copy_pinned(target, view, hash);
         });
  copied_now(view.data);
  if (!non_blocking && !fake_cuda::forgets_host_wait())
    wait_for_current_stream();
}

void copy_to_host(const at::Tensor& from, const at::Tensor& to,
                  bool non_blocking) {
  const bool pinned = is_pinned(to.const_data_ptr());
  const TensorView source(from), target(to);
  std::vector<RaceDetector::Range> ranges = {source.range(Use::kRead)};
  if (pinned) ranges.push_back(target.range(Use::kWrite));
  launch("a copy to the host", ranges,
         [source, target] { target.for_kernel().copy_(source.for_kernel()); });
  if (pinned) copied_now(target.data);
  if (!pinned || !non_blocking) wait_for_current_stream();
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to,
                     bool non_blocking) {
  if (to.numel() == 0) return to;
  const at::Tensor from = self.expand_as(to);
  const c10::DeviceGuard guard(to.is_cpu() ? from.device() : to.device());
  if (from.is_cpu()) {
    copy_to_device(from, to, non_blocking);
  } else if (to.is_cpu()) {
    copy_to_host(from, to, non_blocking);
  } else {
    const TensorView source(from), target(to);
    note_traffic("a copy", source.own_bytes() + target.own_bytes());
    launch(
        "a copy", {source.range(Use::kRead), target.range(Use::kWrite)},
        [source, target] { target.for_kernel().copy_(source.for_kernel()); });
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  if (to.is_cpu())
    at::native::resize_output(to, self.sizes());
  else
    resize_tensor(to, self.sizes(), std::nullopt);
  return copy_from(self, to, false);
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  used_on(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::cpu::as_strided_symint);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", at::cpu::unfold);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage",
         static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(at::cpu::set_));
  m.impl("set_.source_Storage_storage_offset", at::cpu::set__symint);
  m.impl("set_.source_Tensor",
         static_cast<at::Tensor& (*)(at::Tensor&, const at::Tensor&)>(
             at::cpu::set_));
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("record_stream", record_stream);
  // Their composite kernels would be taken before a fallback.
  for (const char* name :
       {"convolution_overrideable", "convolution_backward_overrideable",
        "native_batch_norm", "_local_scalar_dense", "_foreach_copy_",
        "_foreach_add_.List"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_as_kernel>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_as_kernel>());
}

}  // namespace
}  // namespace fake_gpu
