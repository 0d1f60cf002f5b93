#include "chexnet/watch/heartbeat_table.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

constexpr size_t kLine = 64;
static_assert(std::atomic<int>::is_always_lock_free &&
              alignof(HeartbeatTable::Slot) <= kLine);

std::string random_name() {
  std::random_device random;
  return "/chexnet-" + std::to_string(random()) + std::to_string(random());
}

// Maps `bytes` of the shared memory `name`; null, and an errno, when that
// fails.
std::byte* map_shared(const std::string& name, size_t bytes, bool create,
                      int& error) {
  const int fd =
      shm_open(name.c_str(), create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  if (fd < 0) {
    error = errno;
    return nullptr;
  }
  // ftruncate() would take no memory: a full /dev/shm were a SIGBUS at the
  // first write.
  error = create ? posix_fallocate(fd, 0, static_cast<off_t>(bytes)) : 0;
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  close(fd);
  return error == 0 ? static_cast<std::byte*>(memory) : nullptr;
}

// Each host has its own /dev/shm; test hosts may share one, so a host's first
// rank is in the name.
std::string name_of_host(Communicator& comm) {
  const auto hosts = gather_text(comm, host_name());
  const auto at = std::ranges::find(hosts, host_name()) - hosts.begin();
  return broadcast_text(comm, random_name()) + "-" + std::to_string(at);
}

}  // namespace

HeartbeatTable::HeartbeatTable(Communicator& comm)
    : count_(comm.world().local_size),
      own_(comm.world().local_rank),
      bytes_(kLine + static_cast<size_t>(count_) * sizeof(Slot)),
      seen_(static_cast<size_t>(count_), 0) {
  assert(own_ >= 0 && own_ < count_);
  const std::string name = name_of_host(comm);
  int error = 0;

  // The host's first rank makes it, the others open it, and then its name goes.
  if (own_ == 0) {
    memory_ = map_shared(name, bytes_, true, error);
    if (memory_ != nullptr) construct();
  }
  comm.barrier();
  if (own_ != 0) memory_ = map_shared(name, bytes_, false, error);
  comm.barrier();
  if (own_ == 0) shm_unlink(name.c_str());

  if (any_rank(comm, memory_ == nullptr)) {
    const std::string problem =
        error == 0 ? "on another rank" : std::strerror(error);
    if (memory_ != nullptr) munmap(memory_, bytes_);
    throw DeviceError("[watchdog] /dev/shm" + name + ": no shared memory (" +
                      problem + "). Hint: is /dev/shm mounted and not full?");
  }
  end_code_ = std::launder(reinterpret_cast<std::atomic<int>*>(memory_));
  slots_ = std::launder(reinterpret_cast<Slot*>(memory_ + kLine));
  own().pid = getpid();
  own().rank = comm.rank();
  own().heartbeat_s = own().phase.since_s = now_s();
}

// [end code, padded to a line][slot of local rank 0][slot of local rank 1]…
void HeartbeatTable::construct() {
  new (memory_) std::atomic<int>(0);
  for (int i = 0; i < count_; ++i)
    new (memory_ + kLine + static_cast<size_t>(i) * sizeof(Slot)) Slot();
}

RankView HeartbeatTable::view(int local_rank) {
  assert(local_rank >= 0 && local_rank < count_);
  const Slot& slot = slots_[local_rank];
  RankView view;
  view.rank = slot.rank;
  view.pid = slot.pid;
  view.phase = static_cast<Phase>(slot.phase.phase.load());
  view.ended = view.phase == Phase::kEnded;
  // Where ranks live in containers of their own, their process numbers mean
  // nothing here.
  char& seen = seen_[static_cast<size_t>(local_rank)];
  const bool there = kill(view.pid, 0) == 0 || errno != ESRCH;
  seen = static_cast<char>(seen | static_cast<char>(there));
  view.gone = !view.ended && seen != 0 && !there;
  const double now = now_s();
  view.heartbeat_age_s = std::max(0.0, now - slot.heartbeat_s);
  view.phase_age_s = std::max(0.0, now - slot.phase.since_s);
  view.sequence = slot.phase.sequence;
  view.step = slot.phase.step;
  return view;
}

HeartbeatTable::~HeartbeatTable() { munmap(memory_, bytes_); }

}  // namespace chexnet
