#include "fakes/fake_gpu/communication.hpp"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <map>
#include <utility>

#include "fakes/fake_gpu/allocator.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "fakes/fake_gpu/memory.hpp"

namespace fake_gpu {
namespace {

using chexnet::GradientCompression;

c10::Stream on_present_device(cudaStream_t stream) {
  return stream_of(current_stream().device_index(), stream);
}

at::ScalarType type_of(GradientCompression format) {
  return format == GradientCompression::kBf16 ? at::kBFloat16 : at::kHalf;
}

at::Tensor kernel_tensor(const void* data, size_t count, at::ScalarType type) {
  return at::from_blob(kernel_view(data), {static_cast<int64_t>(count)}, type);
}

// The communicator's memory, alive until it is given back.
std::map<void*, c10::DataPtr>& pieces() {
  static auto* const pieces = new std::map<void*, c10::DataPtr>;
  return *pieces;
}

void* allocate(size_t bytes, cudaStream_t stream) {
  const c10::StreamGuard guard(on_present_device(stream));
  c10::DataPtr piece = device_allocator()->allocate(bytes);
  void* memory = piece.get();
  pieces()[memory] = std::move(piece);
  return memory;
}

void pack(const float* from, void* to, size_t count, float scale,
          GradientCompression format, cudaStream_t stream) {
  const c10::StreamGuard guard(on_present_device(stream));
  launch("pack", {{from, count * 4, Use::kRead}, {to, count * 2, Use::kWrite}},
         [=, type = type_of(format)] {
           kernel_tensor(to, count, type)
               .copy_(kernel_tensor(from, count, at::kFloat) * scale);
         });
}

void unpack(const void* from, float* to, size_t count,
            GradientCompression format, cudaStream_t stream) {
  const c10::StreamGuard guard(on_present_device(stream));
  launch("unpack",
         {{from, count * 2, Use::kRead}, {to, count * 4, Use::kWrite}},
         [=, type = type_of(format)] {
           kernel_tensor(to, count, at::kFloat)
               .copy_(kernel_tensor(from, count, type));
         });
}

}  // namespace

chexnet::DeviceFunctions device_functions() {
  return {[] { return handle_of(current_stream()); }, allocate,
          [](void* memory) { pieces().erase(memory); }, pack, unpack};
}

}  // namespace fake_gpu
