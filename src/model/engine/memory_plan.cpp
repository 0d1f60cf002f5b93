#include "chexnet/model/engine/memory_plan.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <new>
#include <numeric>

// Packing rectangles: a buffer is as wide as its lifetime and as high as its
// bytes, and may be moved up and down only. Largest first, because small ones
// fit into the gaps that large ones leave.
namespace chexnet {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

int MemoryPlan::add(size_t bytes, int first, int last) {
  assert(first <= last);
  buffers_.push_back({rounded_up(bytes, kAlignment), first, last, 0});
  return static_cast<int>(buffers_.size()) - 1;
}

void MemoryPlan::assign_offsets() {
  std::vector<size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return buffers_[a].bytes > buffers_[b].bytes;
  });
  std::vector<const Buffer*> placed;  // by offset
  bytes_ = 0;
  for (const size_t i : order) {
    Buffer& buffer = buffers_[i];
    size_t at = 0;
    for (const Buffer* other : placed) {
      if (other->last < buffer.first || buffer.last < other->first) continue;
      if (at + buffer.bytes <= other->offset) break;
      at = std::max(at, other->offset + other->bytes);
    }
    buffer.offset = at;
    bytes_ = std::max(bytes_, at + buffer.bytes);
    placed.insert(
        std::ranges::upper_bound(placed, at, {},
                                 [](const Buffer* b) { return b->offset; }),
        &buffer);
  }
}

Arena::~Arena() { release(); }

void Arena::release() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
  mapping_ = data_ = nullptr;
  mapped_ = bytes_ = 0;
}

std::byte* Arena::reserve(size_t bytes) {
  if (bytes <= bytes_) return data_;
  release();
  const size_t wanted = rounded_up(bytes, kHugePage) + kHugePage;
  void* mapping = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  mapped_ = wanted;
  void* start = mapping_;
  size_t space = wanted;
  data_ = static_cast<std::byte*>(
      std::align(kHugePage, wanted - kHugePage, start, space));
  bytes_ = wanted - kHugePage;
  madvise(data_, bytes_, MADV_HUGEPAGE);
  return data_;
}

}  // namespace chexnet
