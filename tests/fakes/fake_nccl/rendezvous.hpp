// The shared memory in which the ranks of one fake NCCL world meet.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fake_nccl {

// One mapping per world and process, so that the thread sanitizer sees ranks
// that are threads meet at the same addresses.
class Rendezvous {
 public:
  static constexpr size_t kSlot = size_t{1} << 17;  // bytes of a rank

  static std::shared_ptr<Rendezvous> open(const std::string& name, int ranks);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  std::byte* slot(int rank);
  // The `meetings`th meeting of this rank (from 1) with all others; false when
  // `stop` was set before they came.
  bool meet(uint32_t meetings, const std::atomic<bool>& stop);

 private:
  // All of it is zero at first.
  struct Head {
    std::atomic<uint32_t> arrivals;
  };
  Rendezvous(std::string name, int ranks);
  std::string name_;
  uint32_t ranks_;
  size_t bytes_;
  Head* head_ = nullptr;
};

}  // namespace fake_nccl
