#include "fakes/fake_nccl/rendezvous.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "fakes/fake_cudart/futex.hpp"

namespace fake_nccl {
namespace {

constexpr size_t kHead = 4096;

struct Open {
  std::mutex mutex;  // guards worlds
  std::map<std::string, std::weak_ptr<Rendezvous>> worlds;
};
Open& opened() {
  static auto* const opened = new Open;
  return *opened;
}

}  // namespace

std::shared_ptr<Rendezvous> Rendezvous::open(const std::string& name,
                                             int ranks) {
  const std::lock_guard lock(opened().mutex);
  auto& known = opened().worlds[name];
  std::shared_ptr<Rendezvous> world = known.lock();
  if (!world) {
    world = std::shared_ptr<Rendezvous>(new Rendezvous(name, ranks));
    known = world;
  }
  return world;
}

Rendezvous::Rendezvous(std::string name, int ranks)
    : name_(std::move(name)),
      ranks_(static_cast<uint32_t>(ranks)),
      bytes_(kHead + static_cast<size_t>(ranks) * kSlot) {
  const int file = shm_open(name_.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes_)) != 0)
    std::abort();
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::abort();
  close(file);
  head_ = static_cast<Head*>(memory);
}

Rendezvous::~Rendezvous() {
  munmap(head_, bytes_);
  shm_unlink(name_.c_str());
}

std::byte* Rendezvous::slot(int rank) {
  return reinterpret_cast<std::byte*>(head_) + kHead +
         static_cast<size_t>(rank) * kSlot;
}

bool Rendezvous::meet(uint32_t meetings, const std::atomic<bool>& stop) {
  std::atomic<uint32_t>& arrivals = head_->arrivals;
  arrivals.fetch_add(1, std::memory_order_acq_rel);
  fake_cuda::wake_all(arrivals);
  for (;;) {
    const uint32_t seen = arrivals.load(std::memory_order_acquire);
    if (seen >= meetings * ranks_) {
      // The name is needed no more once all have come.
      if (meetings == 1) shm_unlink(name_.c_str());
      return true;
    }
    if (stop.load(std::memory_order_relaxed)) return false;
    fake_cuda::wait_while(arrivals, seen);
  }
}

}  // namespace fake_nccl
