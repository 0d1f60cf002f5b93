// Where each buffer is in one arena, decided before anything is computed:
// buffers whose lifetimes do not overlap share memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chexnet {

// To the next multiple of `to`.
inline size_t rounded_up(size_t bytes, size_t to) {
  return (bytes + to - 1) / to * to;
}

class MemoryPlan {
 public:
  static constexpr size_t kAlignment = 64;

  // A buffer that is in use from moment `first` to moment `last`, both
  // included. Moments are any ascending numbers. Returns its number.
  int add(size_t bytes, int first, int last);
  // Gives every buffer its offset: largest first, each at the lowest offset
  // free for its lifetime.
  void assign_offsets();

  size_t bytes() const {
    return bytes_;
  }  // of the arena, after assign_offsets()
  size_t offset(int buffer) const {
    return buffers_[static_cast<size_t>(buffer)].offset;
  }
  size_t size(int buffer) const {
    return buffers_[static_cast<size_t>(buffer)].bytes;
  }

 private:
  struct Buffer {
    size_t bytes = 0;
    int first = 0, last = 0;
    size_t offset = 0;
  };
  std::vector<Buffer> buffers_;
  size_t bytes_ = 0;
};

// Zeroed memory straight from the system, in 2 MB pages where the system gives
// them. Grows only.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  // At least `bytes`; the former contents are lost when it has to grow.
  // std::bad_alloc.
  std::byte* reserve(size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  void release();
  std::byte* mapping_ = nullptr;
  std::byte* data_ = nullptr;
  size_t mapped_ = 0, bytes_ = 0;
};

// Takes pieces of one region, one after the other. With a null region it only
// counts.
class LinearAllocator {
 public:
  explicit LinearAllocator(std::byte* region = nullptr) : region_(region) {}
  template <class T>
  T* take(int64_t count) {
    used_ = rounded_up(used_, MemoryPlan::kAlignment);
    T* piece =
        region_ == nullptr ? nullptr : reinterpret_cast<T*>(region_ + used_);
    used_ += static_cast<size_t>(count) * sizeof(T);
    return piece;
  }
  size_t used() const { return used_; }

 private:
  std::byte* region_;
  size_t used_ = 0;
};

}  // namespace chexnet
