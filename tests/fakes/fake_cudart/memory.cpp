// Memory of the fake device, pinned memory, and copies between them.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "fakes/fake_cudart/fake_cuda.hpp"
#include "fakes/fake_cudart/stream.hpp"
#include "fakes/fake_cudart/watch.hpp"

namespace fake_cuda {
namespace {

struct Piece {
  size_t bytes = 0;
  int device = -1;  // -1: pinned memory of the host
};
struct Memory {
  std::mutex mutex;  // guards pieces
  std::map<const std::byte*, Piece> pieces;
};
Memory& memory() {
  static auto* const memory = new Memory;
  return *memory;
}

constexpr size_t kAlignment = 512;
// Memory that nobody wrote is a NaN in every floating type.
constexpr int kUnwritten = 0xff;

cudaError_t take(void** out, size_t bytes, int device) {
  *out = nullptr;
  if (device_error() != cudaSuccess) return noted(device_error());
  if (bytes == 0) return cudaSuccess;
  const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* piece = std::aligned_alloc(kAlignment, whole);
  if (piece == nullptr) return noted(cudaErrorMemoryAllocation);
  std::memset(piece, kUnwritten, whole);
  const std::lock_guard lock(memory().mutex);
  memory().pieces[static_cast<const std::byte*>(piece)] = {bytes, device};
  *out = piece;
  return cudaSuccess;
}

// As on a GPU, freeing waits for all work there.
cudaError_t give_back(void* piece, bool is_device) {
  if (piece == nullptr) return noted(device_error());
  int device = current_device();
  {
    const std::lock_guard lock(memory().mutex);
    const auto found =
        memory().pieces.find(static_cast<const std::byte*>(piece));
    if (found == memory().pieces.end() ||
        (found->second.device >= 0) != is_device)
      return noted(cudaErrorInvalidValue);
    if (is_device) device = found->second.device;
    memory().pieces.erase(found);
  }
  count_wait_for_all();
  wait_for_device(device);
  std::free(piece);
  return noted(device_error());
}

// The piece that holds the address; bytes 0 where it is ordinary memory.
Piece piece_of(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(memory().mutex);
  auto after = memory().pieces.upper_bound(at);
  if (after == memory().pieces.begin()) return {};
  --after;
  return at < after->first + after->second.bytes ? after->second : Piece{};
}

// Memory of the host that is not pinned.
bool is_pageable(const void* address) {
  return piece_of(address).bytes == 0 && kernel_view(address) == address;
}

}  // namespace

size_t allocations() {
  const std::lock_guard lock(memory().mutex);
  return memory().pieces.size();
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = size_t{1} << 34;
  size_t used = 0;
  const std::lock_guard lock(memory().mutex);
  for (const auto& [address, piece] : memory().pieces)
    if (piece.device == current_device()) used += piece.bytes;
  *free = *total - used;
  return checked();
}
cudaError_t cudaMalloc(void** out, size_t bytes) {
  return take(out, bytes, current_device());
}
cudaError_t cudaFree(void* piece) { return give_back(piece, true); }
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  return take(out, bytes, -1);
}
cudaError_t cudaMallocHost(void** out, size_t bytes) {
  return take(out, bytes, -1);
}
cudaError_t cudaFreeHost(void* piece) { return give_back(piece, false); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* address) {
  *attributes = {};
  const Piece piece = piece_of(address);
  attributes->device = piece.device;
  attributes->type = cudaMemoryTypeUnregistered;
  if (piece.bytes > 0)
    attributes->type =
        piece.device >= 0 ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  return checked();
}

// Ordinary memory is read, or complete, before the call returns; pinned memory
// is touched when the CUDA stream gets there.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  cudaStream_t real = real_stream(stream);
  if (is_captured(real) && (is_pageable(from) || is_pageable(to)))
    return refused(cudaErrorStreamCaptureUnsupported);
  uses(real, "cudaMemcpyAsync",
       {{from, bytes, Use::kRead}, {to, bytes, Use::kWrite}});
  if (is_pageable(from)) {
    const auto* begin = static_cast<const std::byte*>(from);
    enqueue(real, [to, staged = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(for_kernel(to), staged.data(), staged.size());
    });
  } else {
    enqueue(real, [to, from, bytes] {
      std::memmove(for_kernel(to), kernel_view(from), bytes);
    });
  }
  if (is_pageable(to)) {
    count_wait_for_all();
    wait_for(real);
  }
  return checked();
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes,
                            cudaStream_t stream) {
  cudaStream_t real = real_stream(stream);
  uses(real, "cudaMemsetAsync", {{to, bytes, Use::kWrite}});
  enqueue(real,
          [to, value, bytes] { std::memset(for_kernel(to), value, bytes); });
  return checked();
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return cudaStreamSynchronize(nullptr);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  cudaMemsetAsync(to, value, bytes, nullptr);
  return checked();
}

}  // extern "C"
