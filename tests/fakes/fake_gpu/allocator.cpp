#include "fakes/fake_gpu/allocator.hpp"

#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "fakes/fake_cudart/capture.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "fakes/fake_gpu/memory.hpp"

namespace fake_gpu {
namespace {

constexpr size_t kPiece = 512;
constexpr int kUnwritten = 0xff;  // a NaN in every floating type

struct Block {
  std::byte* begin = nullptr;
  size_t bytes = 0;
  c10::Stream stream;
  int pool = 0;
  std::vector<c10::Stream> other_streams = {};
};

// Freed, but other CUDA streams than its own still use it.
struct Waiting {
  std::unique_ptr<Block> block;
  std::vector<cudaEvent_t> events;
};

struct Heap {
  size_t end = 0;  // of what was ever handed out
  size_t in_use = 0, peak = 0, peak_end = 0;
};

// Free blocks of a pool, a stream and a size.
struct Kind {
  int pool;
  c10::Stream stream;
  size_t bytes;
  bool operator<(const Kind& other) const {
    return std::make_tuple(pool, stream.id(), bytes) <
           std::make_tuple(other.pool, other.stream.id(), other.bytes);
  }
};

struct Memory {
  std::mutex mutex;  // guards what follows
  std::array<Heap, 16> heaps;
  std::map<Kind, std::vector<std::unique_ptr<Block>>> free;
  std::vector<Waiting> waiting;
  int pool = 0;  // of new blocks; 0 is that of all but graphs
  int pools = 0;
};
Memory& memory() {
  static auto* const memory = new Memory;
  return *memory;
}

size_t index_of(const c10::Stream& stream) {
  return static_cast<unsigned char>(stream.device_index());
}

Heap& present_heap_locked() {
  return memory().heaps.at(index_of(current_stream()));
}

Kind kind_of(const Block& block) {
  return {block.pool, block.stream, block.bytes};
}

void collect_locked(Memory& m) {
  if (fake_cuda::is_capturing()) return;
  std::erase_if(m.waiting, [&](Waiting& waiting) {
    for (cudaEvent_t event : waiting.events)
      if (cudaEventQuery(event) != cudaSuccess) {
        cudaGetLastError();  // "not ready" is no error here
        return false;
      }
    for (cudaEvent_t event : waiting.events) cudaEventDestroy(event);
    m.free[kind_of(*waiting.block)].push_back(std::move(waiting.block));
    return true;
  });
}

// Gives back what is free at the end of a device's heap, on which no stream
// works any more.
void trim_locked(Memory& m, c10::DeviceIndex device) {
  Heap& heap = m.heaps.at(static_cast<size_t>(device));
  std::map<size_t, size_t> begin_of;  // [end], from the heap's begin
  const std::byte* heap_begin = device_memory(device);
  for (const auto& [key, blocks] : m.free)
    for (const auto& block : blocks)
      if (key.pool == 0 && key.stream.device_index() == device) {
        const auto begin = static_cast<size_t>(block->begin - heap_begin);
        begin_of[begin + block->bytes] = begin;
      }
  const auto last_free = [&] { return begin_of.find(heap.end); };
  for (auto last = last_free(); last != begin_of.end(); last = last_free())
    heap.end = last->second;
  for (auto& [key, blocks] : m.free)
    std::erase_if(blocks, [&](const std::unique_ptr<Block>& block) {
      return block->pool == 0 && block->stream.device_index() == device &&
             block->begin >= heap_begin + heap.end;
    });
}

std::unique_ptr<Block> take(size_t bytes) {
  const c10::Stream stream = current_stream();
  const auto device = index_of(stream);
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  collect_locked(m);
  Heap& heap = m.heaps.at(device);
  auto& fitting = m.free[{m.pool, stream, bytes}];
  std::unique_ptr<Block> block;
  if (!fitting.empty()) {
    block = std::move(fitting.back());
    fitting.pop_back();
  } else {
    TORCH_CHECK_WITH(OutOfMemoryError, heap.end + bytes <= memory_bytes(),
                     "fake GPU: out of memory. Tried to allocate ", bytes,
                     " bytes; ", memory_bytes() - heap.end, " are free.");
    block = std::make_unique<Block>(
        Block{device_memory(stream.device_index()) + heap.end, bytes, stream,
              m.pool});
    heap.end += bytes;
    heap.peak_end = std::max(heap.peak_end, heap.end);
  }
  heap.in_use += bytes;
  heap.peak = std::max(heap.peak, heap.in_use);
  return block;
}

void give_back(void* context) {
  std::unique_ptr<Block> block(static_cast<Block*>(context));
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  m.heaps.at(index_of(block->stream)).in_use -= block->bytes;
  if (block->other_streams.empty()) {
    m.free[kind_of(*block)].push_back(std::move(block));
    return;
  }
  Waiting waiting{std::move(block), {}};
  for (const c10::Stream& stream : waiting.block->other_streams) {
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, handle_of(stream));
    waiting.events.push_back(event);
  }
  waiting.block->other_streams.clear();
  m.waiting.push_back(std::move(waiting));
}

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device = current_stream().device();
    if (bytes == 0) return {nullptr, nullptr, give_back, device};
    Block* block = take((bytes + kPiece - 1) / kPiece * kPiece).release();
    std::byte* begin = block->begin;
    const size_t size = block->bytes;
    // Memory that nobody wrote is a NaN; and a new owner is a use of the
    // memory: a race with another CUDA stream that still uses it is found here.
    launch_aside("a new tensor", {{begin, size, Use::kWrite}}, [begin, size] {
      std::memset(kernel_view(begin), kUnwritten, size);
    });
    return {begin, block, give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    launch("a copy of a storage",
           {{to, bytes, Use::kWrite}, {from, bytes, Use::kRead}},
           [to, from, bytes] {
             std::memcpy(kernel_view(to), kernel_view(from), bytes);
           });
  }
};

// Pinned memory is kept for reuse too, as freeing it would wait for the device.
// A piece waits until the copies that use it are done.
struct PinnedPiece {
  void* memory = nullptr;
  size_t bytes = 0;
  std::map<cudaStream_t, cudaEvent_t> copies;  // the last of each stream
};
struct PinnedMemory {
  std::mutex mutex;  // guards what follows
  std::map<const void*, PinnedPiece> used;
  std::vector<PinnedPiece> free;
};
PinnedMemory& pinned() {
  static auto* const pinned = new PinnedMemory;
  return *pinned;
}

bool is_idle(PinnedPiece& piece) {
  for (const auto& [stream, copy] : piece.copies)
    if (cudaEventQuery(copy) != cudaSuccess) {
      cudaGetLastError();  // "not ready" is no error here
      return false;
    }
  for (const auto& [stream, copy] : piece.copies) cudaEventDestroy(copy);
  piece.copies.clear();
  return true;
}

void free_pinned(void* memory) {
  const std::lock_guard lock(pinned().mutex);
  pinned().free.push_back(std::move(pinned().used.extract(memory).mapped()));
}

void* take_pinned(size_t bytes) {
  if (fake_cuda::is_capturing()) check(cudaErrorStreamCaptureUnsupported);
  const std::lock_guard lock(pinned().mutex);
  PinnedPiece piece{nullptr, bytes, {}};
  auto& free = pinned().free;
  const auto fitting = std::ranges::find_if(free, [&](PinnedPiece& other) {
    return other.bytes == bytes && is_idle(other);
  });
  if (fitting != free.end()) {
    piece = std::move(*fitting);
    free.erase(fitting);
  } else {
    check(cudaHostAlloc(&piece.memory, bytes, cudaHostAllocDefault));
  }
  void* memory = piece.memory;
  pinned().used.emplace(memory, std::move(piece));
  return memory;
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = bytes > 0 ? take_pinned(bytes) : nullptr;
    return {memory, memory, memory != nullptr ? free_pinned : nullptr,
            c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

c10::Allocator* device_allocator() {
  static auto* const allocator = new DeviceAllocator;
  return allocator;
}

c10::Allocator* pinned_allocator() {
  static auto* const allocator = new PinnedAllocator;
  return allocator;
}

bool is_pinned(const void* address) {
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, address);
  return attributes.type == cudaMemoryTypeHost;
}

void copied_now(const void* address) {
  const std::lock_guard lock(pinned().mutex);
  auto piece = pinned().used.upper_bound(address);
  if (piece == pinned().used.begin()) return;
  --piece;
  const auto* begin = static_cast<const std::byte*>(piece->first);
  if (address >= begin + piece->second.bytes) return;
  cudaStream_t stream = handle_of(current_stream());
  cudaEvent_t& copy = piece->second.copies[stream];
  if (copy == nullptr)
    check(cudaEventCreateWithFlags(&copy, cudaEventDisableTiming));
  check(cudaEventRecord(copy, stream));
}

void used_on(const c10::DataPtr& data, const c10::Stream& stream) {
  auto* block = static_cast<Block*>(data.get_context());
  if (block == nullptr || block->stream == stream) return;
  const std::lock_guard lock(memory().mutex);
  block->other_streams.push_back(stream);
}

void resize_storage(const c10::Storage& storage, size_t bytes) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  const size_t kept = std::min(bytes, impl->nbytes());
  c10::DataPtr larger = device_allocator()->allocate(bytes);
  if (kept > 0)
    device_allocator()->copy_data(larger.get(), impl->data_ptr().get(), kept);
  impl->set_data_ptr_noswap(std::move(larger));
  impl->set_nbytes(bytes);
}

int new_pool() {
  const std::lock_guard lock(memory().mutex);
  return ++memory().pools;
}

void take_from_pool(int pool) {
  const std::lock_guard lock(memory().mutex);
  memory().pool = pool;
}

void release_pool(int pool) {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  std::vector<std::unique_ptr<Block>> blocks;
  for (auto& [kind, free] : m.free)
    if (kind.pool == pool) std::ranges::move(free, std::back_inserter(blocks));
  std::erase_if(m.free, [pool](const auto& f) { return f.first.pool == pool; });
  for (auto& block : blocks) {
    block->pool = 0;
    m.free[kind_of(*block)].push_back(std::move(block));
  }
}

size_t bytes_in_use() {
  const std::lock_guard lock(memory().mutex);
  return present_heap_locked().in_use;
}

size_t peak_bytes() {
  const std::lock_guard lock(memory().mutex);
  return present_heap_locked().peak;
}

size_t peak_held_bytes() {
  const std::lock_guard lock(memory().mutex);
  return present_heap_locked().peak_end;
}

// A gap takes nothing but a tensor of its size.
size_t free_bytes() {
  const std::lock_guard lock(memory().mutex);
  return memory_bytes() - present_heap_locked().end;
}

void restart_peak() {
  cudaDeviceSynchronize();
  const std::lock_guard lock(memory().mutex);
  collect_locked(memory());
  trim_locked(memory(), current_stream().device_index());
  Heap& heap = present_heap_locked();
  heap.peak = heap.in_use;
  heap.peak_end = heap.end;
}

}  // namespace fake_gpu
