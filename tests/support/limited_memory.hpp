// The host's memory in the part of a GPU's: what LibTorch allocates for tensors
// is counted and limited, and what is beyond the limit fails as on a GPU.
#pragma once

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "chexnet/comm/cuda_library.hpp"

namespace chexnet {

// While it lives, tensors of the CPU come from it. What was allocated before
// does not count. One at a time.
class LimitedMemory final : public CudaLibrary, private c10::Allocator {
 public:
  explicit LimitedMemory(size_t bytes)
      : limit_(bytes), before_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(this, kPriority);
    current = this;
  }
  ~LimitedMemory() override {
    current = nullptr;
    c10::SetCPUAllocator(before_, kPriority);
  }
  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;

  size_t most_allocated() const { return most_; }
  int refused() const { return refused_; }

  std::string device_kind() const override { return "cpu"; }
  GpuProblem problem() const override { return {}; }
  int device_count() const override { return 1; }
  GpuInfo info(int) const override { return {}; }
  void select(int) override {}
  std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Communicator> host,
                                          int, double) override {
    return host;
  }
  std::unique_ptr<Recorder> make_recorder() override { return nullptr; }
  std::pmr::memory_resource* pinned_memory() override {
    return std::pmr::get_default_resource();
  }
  std::string kernels_problem() override { return ""; }
  void mark_ranges(Profiler&) override {}
  void synchronize() override {}
  size_t free_bytes() const override { return limit_ - allocated_; }
  size_t peak_bytes() const override { return peak_; }
  size_t peak_held_bytes() const override { return peak_; }
  void restart_peak() override { peak_ = allocated_; }
  std::string versions() const override { return ""; }

 private:
  static constexpr uint8_t kPriority = 255;
  static inline LimitedMemory* current = nullptr;  // of what is freed later
  static constexpr size_t kAlignment = 64;

  c10::DataPtr allocate(size_t bytes) override {
    const std::lock_guard guard(mutex_);
    if (allocated_ + bytes > limit_) {
      ++refused_;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory");
    }
    void* memory = std::aligned_alloc(
        kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
    sizes_[memory] = bytes;
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    most_ = std::max(most_, peak_);
    return {memory, memory, release, c10::kCPU};
  }
  static void release(void* memory) {
    if (current != nullptr) current->forget(memory);
    std::free(memory);
  }
  void forget(void* memory) {
    const std::lock_guard guard(mutex_);
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;  // of one that lived before
    allocated_ -= found->second;
    sizes_.erase(found);
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  size_t limit_;
  c10::Allocator* before_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<void*, size_t> sizes_;
  size_t allocated_ = 0, peak_ = 0, most_ = 0;
  int refused_ = 0;
};

}  // namespace chexnet
