#include "fakes/fake_nccl/fake_nccl.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fakes/fake_cudart/stream.hpp"
#include "fakes/fake_cudart/watch.hpp"
#include "fakes/fake_nccl/combine.hpp"
#include "fakes/fake_nccl/rendezvous.hpp"

namespace fake_nccl {
namespace {

// State of a communicator's work on CUDA streams; it may outlive the
// communicator.
struct World {
  int rank = 0, ranks = 1;
  int device = fake_cuda::current_device();  // of the thread that starts it
  std::shared_ptr<Rendezvous> meeting;
  uint32_t meetings = 0;  // of the present collective's thread
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> state{ncclSuccess};
  // Of collectives, which may be on several streams; -1 before all have joined.
  std::atomic<int> turn{-1};
  std::atomic<int> launched{0};  // collectives
  std::atomic<int> in_graphs{0};

  bool meet() { return meeting->meet(++meetings, aborted); }
};

struct Faulty {
  std::mutex mutex;  // guards faults
  std::optional<Faults> faults;
};
Faulty& faulty() {
  static auto* const faulty = new Faulty;
  return *faulty;
}
std::atomic<int> alive{0};
thread_local std::string last_error;

Faults from_environment() {
  Faults faults;
  const char* text = std::getenv("FAKE_NCCL_FAULTS");
  std::istringstream parts(text != nullptr ? text : "");
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const double value = std::atof(part.c_str() + equals + 1);
    const int number = static_cast<int>(value);
    if (name == "rank") faults.rank = number;
    if (name == "slow_start_s") faults.slow_start_s = value;
    if (name == "init_never_ends") faults.init_never_ends = number != 0;
    if (name == "connecting_hangs") faults.connecting_hangs = number != 0;
    if (name == "through_host_memory") faults.through_host_memory = number != 0;
    if (name == "never_completes_at") faults.never_completes_at = number;
    if (name == "remote_error_at") faults.remote_error_at = number;
  }
  return faults;
}

Faults faults_of(int rank) {
  const std::lock_guard lock(faulty().mutex);
  if (!faulty().faults) faulty().faults = from_environment();
  const Faults& faults = *faulty().faults;
  return faults.rank < 0 || faults.rank == rank ? faults : Faults{};
}

struct Bytes {
  const void* begin;
  size_t count;
};
void saw(cudaStream_t stream, const char* what, Bytes from, Bytes to) {
  using fake_cuda::Use;
  fake_cuda::uses(fake_cuda::real_stream(stream), what,
                  {{from.begin, from.count, Use::kRead},
                   {to.begin, to.count, Use::kWrite}});
}

// NCCL's default: an algorithm is connected by the first call that needs it.
bool connects_late() {
  const char* late = std::getenv("NCCL_RUNTIME_CONNECT");
  return late == nullptr || std::strcmp(late, "0") != 0;
}

// Where NCCL writes its log; null: it does not. As NCCL does, the environment
// is read once, and the file stays open.
FILE* debug_file() {
  static FILE* const file = [] {
    const char* level = std::getenv("NCCL_DEBUG");
    const char* name = std::getenv("NCCL_DEBUG_FILE");
    FILE* to = nullptr;
    if (level == nullptr || std::strcmp(level, "INFO") != 0) return to;
    if (name != nullptr) to = std::fopen(name, "w");
    if (to == nullptr) return stdout;
    std::setvbuf(to, nullptr, _IOLBF, BUFSIZ);
    return to;
  }();
  return file;
}

void info(const std::string& text) {
  if (FILE* const file = debug_file())
    std::fprintf(file, "fake-host:%d:%d [0] NCCL INFO %s\n", getpid(), gettid(),
                 text.c_str());
}

// In the words of NCCL 2.28: GPUs on one NVLink switch, one channel, whose tree
// is a chain.
void tell_of_links(const World& world, bool through_host_memory) {
  const int rank = world.rank, last = world.ranks - 1;
  const auto gpu = [](int r) {
    return std::to_string(r) + "[" + std::to_string(r) + "]";
  };
  const auto next = std::to_string((rank + 1) % world.ranks);
  const auto here = std::to_string(rank);
  for (int r = 0; r <= last; ++r) {
    info("+ PCI[24.0] - GPU/0-" + std::to_string(r + 1) + "a000 (" +
         std::to_string(r) + ")");
    info("              + NVL[240.0] - NVS/0-0");
  }
  info("Ring 00 : " + std::to_string((rank + last) % world.ranks) + " -> " +
       here + " -> " + next);
  info("Trees [0] " + (rank < last ? next : "-1") + "/-1/-1->" + here + "->" +
       std::to_string(rank - 1));
  info("Channel 00" + std::string(through_host_memory ? "" : "/0") + " : " +
       gpu(rank) + " -> " + gpu((rank + 1) % world.ranks) + " via " +
       (through_host_memory ? "SHM/direct/direct" : "P2P/CUMEM"));
  if (rank > 0)
    info("Channel 00/0 : " + gpu(rank) + " -> " + gpu(rank - 1) +
         " via P2P/CUMEM");
  info(
      "1 coll channels, 0 collnet channels, 0 nvls channels, 1 p2p channels, "
      "1 p2p channels per peer");
}

// Threads that hang for good hold theirs on their stacks alone, where the leak
// sanitizer does not always look. Owns nothing.
void let_be_found(const World* world) {
  static std::mutex mutex;
  static auto* const worlds = new std::vector<const World*>;
  const std::lock_guard lock(mutex);
  worlds->push_back(world);
}

// As long as a graph that holds a collective lives.
std::shared_ptr<void> kept_in_graph(const std::shared_ptr<World>& world) {
  ++world->in_graphs;
  return {nullptr, [world](void*) { --world->in_graphs; }};
}

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

// Piece by piece through the slots; `take` gets `bytes` of the piece at
// `offset` once all ranks have put theirs.
bool exchange(World& world, const void* source, size_t bytes,
              const std::function<void(size_t offset, size_t bytes)>& take) {
  const auto* const from =
      static_cast<const std::byte*>(fake_cuda::kernel_view(source));
  for (size_t at = 0; at < bytes; at += Rendezvous::kSlot) {
    const size_t piece = std::min(Rendezvous::kSlot, bytes - at);
    std::memcpy(world.meeting->slot(world.rank), from + at, piece);
    if (!world.meet()) return false;
    take(at, piece);
    if (!world.meet()) return false;
  }
  return true;
}

}  // namespace

void set_faults(const Faults& faults) {
  const std::lock_guard lock(faulty().mutex);
  faulty().faults = faults;
}

int communicators() { return alive; }

}  // namespace fake_nccl

struct ncclComm {
  std::shared_ptr<fake_nccl::World> world;
  std::string first;  // collective: its kind and size

  // Faults, order and end of a collective of `bytes` whose work is `body`.
  ncclResult_t launch(const char* kind, size_t bytes, cudaStream_t stream,
                      const std::function<void()>& body);
  // NCCL works on the device of the thread that calls it.
  bool on_its_device() const {
    return fake_cuda::current_device() == world->device;
  }
};

ncclResult_t ncclComm::launch(const char* kind, size_t bytes,
                              cudaStream_t stream,
                              const std::function<void()>& body) {
  using namespace fake_nccl;
  const std::string size = kind + std::to_string(bytes);
  if (first.empty()) first = size;
  if (size != first && connects_late())
    while (faults_of(world->rank).connecting_hangs && !world->aborted) rest();
  const auto make = [world = world, body] {
    const int number = world->launched++;
    const Faults faults = faults_of(world->rank);
    const bool hangs =
        faults.never_completes_at == number || faults.remote_error_at == number;
    if (faults.remote_error_at == number) world->state = ncclRemoteError;
    return [world, number, hangs, body] {
      while (!world->aborted && (hangs || world->turn != number)) rest();
      if (world->aborted) return;
      body();
      ++world->turn;
    };
  };
  cudaStream_t real = fake_cuda::real_stream(stream);
  if (fake_cuda::is_captured(real))
    fake_cuda::enqueue_made(real, [make, kept = kept_in_graph(world)] {
      return std::function<void()>(make());
    });
  else
    fake_cuda::enqueue(real, make());
  return ncclSuccess;
}

using namespace fake_nccl;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "/fake_nccl_%d_%d", getpid(),
                ++made);
  return ncclSuccess;
}

// As the program asks: the call returns when all ranks have joined.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *comm = nullptr;
  if (config != nullptr && config->blocking == 0) return ncclInvalidArgument;
  auto world = std::make_shared<World>();
  let_be_found(world.get());
  world->rank = rank;
  world->ranks = ranks;
  const Faults faults = faults_of(rank);
  const bool hangs =
      faults.init_never_ends || (faults.connecting_hangs && !connects_late());
  while (hangs && !world->aborted) rest();
  world->meeting = Rendezvous::open(id.internal, ranks);
  std::this_thread::sleep_for(
      std::chrono::duration<double>(faults.slow_start_s));
  if (!world->meet()) return ncclSystemError;
  world->turn = 0;
  tell_of_links(*world, faults.through_host_memory);
  *comm = new ncclComm{world, {}};
  ++alive;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id,
                              int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm->on_its_device() ? comm->world->state.load() : ncclInvalidUsage;
}
// As NCCL does, it waits for the end of graphs that hold its collectives.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (comm->world->in_graphs > 0 && !comm->world->aborted) rest();
  delete comm;
  --alive;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->world->aborted = true;
  return ncclCommDestroy(comm);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->world->state;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->world->ranks;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->world->rank;
  return ncclSuccess;
}
const char* ncclGetLastError(ncclComm_t comm) {
  const int rank = comm != nullptr ? comm->world->rank : -1;
  last_error = "rank " + std::to_string(rank) + " of a fake NCCL";
  return last_error.c_str();
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "an error of the fake NCCL";
  }
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  if (op != ncclSum && op != ncclAvg) return ncclInvalidArgument;
  if (type != ncclFloat64 && type != ncclFloat32 && type != ncclFloat16 &&
      type != ncclBfloat16)
    return ncclInvalidArgument;
  const size_t size = bytes_of(type);
  saw(stream, "ncclAllReduce", {from, count * size}, {to, count * size});
  return comm->launch("sum", count * size, stream, [=, world = comm->world] {
    auto* const target = static_cast<std::byte*>(fake_cuda::kernel_view(to));
    exchange(*world, from, count * size, [&](size_t at, size_t bytes) {
      combine(*world->meeting, world->ranks, target + at, bytes / size, type,
              op);
    });
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const size_t all = count * bytes_of(type);
  const auto ranks = static_cast<size_t>(comm->world->ranks);
  saw(stream, "ncclAllGather", {from, all}, {to, all * ranks});
  return comm->launch("gather", all, stream, [=, world = comm->world] {
    auto* const target = static_cast<std::byte*>(fake_cuda::kernel_view(to));
    exchange(*world, from, all, [&](size_t at, size_t bytes) {
      for (size_t r = 0; r < ranks; ++r)
        std::memcpy(target + r * all + at,
                    world->meeting->slot(static_cast<int>(r)), bytes);
    });
  });
}

}  // extern "C"
