#include "heartbeat_table.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launched_ranks.hpp"

namespace chexnet {
namespace {

constexpr size_t kLine = 64;
// Several heartbeats: from then on we read from the kernel why.
constexpr double kSilent_s = 0.2;
static_assert(std::atomic<int>::is_always_lock_free &&
              alignof(HeartbeatTable::Slot) <= kLine);

// Maps `bytes` of an open file; null, and an errno, when that fails.
std::byte* map_file(int fd, size_t bytes, bool fresh, int& error) {
  if (fd < 0) {
    error = errno;
    return nullptr;
  }
  // ftruncate() would take no memory: a full /dev/shm would be a SIGBUS at the
  // first write.
  error = fresh ? posix_fallocate(fd, 0, static_cast<off_t>(bytes)) : 0;
  if (error != 0) return nullptr;
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory != MAP_FAILED) return static_cast<std::byte*>(memory);
  error = errno;
  return nullptr;
}

// Which file of this machine it is: no other one has the same.
std::string identity(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return {};
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

std::string random_name() {
  std::random_device random;
  return "/chexnet-" + std::to_string(getpid()) + "-" +
         std::to_string(random()) + std::to_string(random());
}

}  // namespace

// The host's first rank makes it, the others open it through that process.
std::byte* HeartbeatTable::share_nameless(Communicator& comm, int& error) {
  std::byte* memory = nullptr;
  Json said;  // null of a rank that makes none
  int fd = -1;
  if (own_ == 0) {
    fd = memfd_create("chexnet-heartbeats", MFD_CLOEXEC);
    memory = map_file(fd, bytes_, true, error);
    if (memory != nullptr)
      said = {{"host", host_name()},
              {"path", "/proc/" + std::to_string(getpid()) + "/fd/" +
                           std::to_string(fd)},
              {"file", identity(fd)}};
  }
  const auto all = gather_json(comm, said);
  const auto first = std::ranges::find_if(all, [](const Json& of_rank) {
    return of_rank.is_object() && of_rank["host"] == host_name();
  });
  if (own_ != 0 && first != all.end()) {
    fd = open((*first)["path"].get<std::string>().c_str(), O_RDWR | O_CLOEXEC);
    // In another container that process may be another one.
    if (fd < 0 || identity(fd) == (*first)["file"])
      memory = map_file(fd, bytes_, false, error);
  }
  comm.barrier();
  if (fd >= 0) close(fd);
  return memory;
}

// The host's first rank makes it, the others open it, and then its name goes.
// Each host has its own /dev/shm; test hosts may share one, so a host's first
// rank is in the name.
std::byte* HeartbeatTable::share_named(Communicator& comm, int& error) {
  const auto hosts = gather_text(comm, host_name());
  const auto at = std::ranges::find(hosts, host_name()) - hosts.begin();
  const std::string name =
      broadcast_text(comm, random_name()) + "-" + std::to_string(at);
  std::byte* memory = nullptr;
  const auto map = [&](int flags) {
    const int fd = shm_open(name.c_str(), flags, 0600);
    memory = map_file(fd, bytes_, own_ == 0, error);
    if (fd >= 0) close(fd);
  };
  if (own_ == 0) map(O_RDWR | O_CREAT | O_EXCL);
  comm.barrier();
  if (own_ != 0) map(O_RDWR);
  comm.barrier();
  if (own_ == 0) shm_unlink(name.c_str());
  return memory;
}

HeartbeatTable::HeartbeatTable(Communicator& comm)
    : count_(comm.world().local_size),
      own_(comm.world().local_rank),
      bytes_(kLine + static_cast<size_t>(count_) * sizeof(Slot)),
      seen_(static_cast<size_t>(count_), 0) {
  assert(own_ >= 0 && own_ < count_);
  int error = 0;
  memory_ = share_nameless(comm, error);
  if (any_rank(comm, memory_ == nullptr)) {
    if (memory_ != nullptr) munmap(memory_, bytes_);
    memory_ = share_named(comm, error);
  }
  if (any_rank(comm, memory_ == nullptr)) {
    const std::string problem =
        error == 0 ? "on another rank" : std::strerror(error);
    if (memory_ != nullptr) munmap(memory_, bytes_);
    throw DeviceError(
        "[watchdog] no shared memory ({}). Hint: is /dev/shm mounted and not "
        "full?",
        problem);
  }
  if (own_ == 0) construct();
  comm.barrier();  // before that nobody writes
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
  // Where each rank lives in a container, its process number means nothing
  // here.
  char& seen = seen_[static_cast<size_t>(local_rank)];
  const double now = now_s();
  view.heartbeat_age_s = std::max(0.0, now - slot.heartbeat_s);
  const bool silent = view.heartbeat_age_s > kSilent_s;
  // A launcher that is stopped does not wait for those that have ended.
  const bool there = (kill(view.pid, 0) == 0 || errno != ESRCH) &&
                     !(silent && is_zombie(view.pid));
  seen = static_cast<char>(seen | static_cast<char>(there));
  view.gone = !view.ended && seen != 0 && !there;
  view.stopped = there && silent && is_stopped(view.pid);
  view.phase_age_s = std::max(0.0, now - slot.phase.since_s);
  view.sequence = slot.phase.sequence;
  view.step = slot.phase.step;
  return view;
}

HeartbeatTable::~HeartbeatTable() { munmap(memory_, bytes_); }

}  // namespace chexnet
