// What the trainer knows of other ranks. One object per process, passed in; the
// world size may be 1.
//
// Gradient plane: start(buffer) begins a mean over all ranks in place (not a
// sum: statistics of BatchNorm follow the gradients and want a mean; for a sum,
// the caller multiplies its values by size() first, as TrainStep does); poll()
// between layers lets it advance; after finish() the buffers may be used: on
// host buffers it has waited, on device buffers the device's compute stream
// waits for the last of them, and the host waits in wait_until_finished().
// Buffers are started in the same order on every rank and stay untouched until
// finish(). Control plane: blocking collectives on host memory.
//
// Every collective has a deadline: a HangError names rank, collective and
// sequence number. Main thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "chexnet/config/choices.hpp"
#include "chexnet/core/element_type.hpp"
#include "chexnet/core/profiler.hpp"

namespace chexnet {

enum class ReduceOp { kSum, kMax };

struct World {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of this host
};

struct GradientBuffer {
  void* data = nullptr;
  size_t count = 0;
  ElementType type = ElementType::kF32;  // kF32 or kF64
  bool exact = false;                    // never compressed
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual const World& world() const = 0;
  int rank() const { return world().rank; }
  int size() const { return world().size; }

  // A step begins: where a timeline of device buffers begins to look.
  virtual void begin_step() {}
  virtual void start(const GradientBuffer& buffer) = 0;
  virtual void poll() = 0;
  virtual void finish() = 0;
  // `count` numbers of each rank into `all`, of size() * count, in rank order.
  // In device memory they are there for later work of the compute stream, and
  // the host does not wait; in host memory they are there on return.
  virtual void gather(const double* own, double* all, size_t count);
  // Of device buffers: the host waits, with the deadline, for the work up to
  // the earliest finish() that it has not yet waited for: first for the end of
  // the computing (Phase::kBackward), then for the last all-reduce
  // (Phase::kAllReduceWait), and so for each gather() before. Returns the
  // seconds in which the device had nothing to do but these collectives, by the
  // device's clock. Nothing where there is nothing to wait for, as with host
  // buffers always.
  virtual std::optional<double> wait_until_finished() { return std::nullopt; }
  // Around work that is recorded and not executed (Recorder of
  // cuda_library.hpp): keeps the waits that finish() and gather()s between the
  // two calls need; replayed() adds them again for each replay. A recording
  // ends before its communicator. Of device buffers alone.
  struct Recorded {
    virtual ~Recorded() = default;
  };
  virtual void begin_recording() {}
  virtual bool is_recording() const { return false; }
  virtual std::shared_ptr<Recorded> end_recording() { return nullptr; }
  virtual void replayed(const std::shared_ptr<Recorded>&) {}
  // Gives up what is under way and waits for nothing, neither here nor in the
  // destructor; call no other member afterwards. For a process that is about to
  // end by an error; a destructor during an exception does the same.
  virtual void abort() noexcept {}
  virtual void set_compression(GradientCompression compression) = 0;

  virtual void all_reduce(std::span<double> values, ReduceOp op) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // The bytes of every rank, indexed by rank; lengths may differ.
  virtual std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte> bytes) = 0;
  virtual void barrier() = 0;
  // The number of the collective that this rank enters now; as all ranks enter
  // the same, they count alike. For a communicator that carries gradients
  // beside this one.
  virtual uint64_t next_sequence() { return 0; }

  // Records waits and the transfer of gradient buffers there; null: not. A
  // composed communicator passes it on.
  virtual void set_profiler(Profiler* profiler) { profiler_ = profiler; }

  // Versions and transport for the settings table.
  virtual std::string description() const = 0;

 protected:
  Profiler* profiler_ = nullptr;
};

// A string of rank `root` on every rank.
std::string broadcast_text(Communicator& comm, std::string text, int root = 0);
// A number (or another type that is bytes alone) of rank `root` on every rank.
template <class T>
T broadcast_value(Communicator& comm, T value, int root = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  comm.broadcast(std::as_writable_bytes(std::span(&value, 1)), root);
  return value;
}
std::vector<std::string> gather_text(Communicator& comm,
                                     const std::string& text);
// True on every rank when it is on any.
bool any_rank(Communicator& comm, bool value);

// The world of one process: collectives are the identity.
std::unique_ptr<Communicator> solo_communicator();

struct MpiOptions {
  double timeout_s = 600;
  MpiFamily family = MpiFamily::kOpenMpi;
  std::string chosen_by;  // why this MPI, for description(): "its launcher"
};
// Opens the MPI library and our side of it (comm/mpi_library.hpp), calls
// MPI_Init, and finalizes when destroyed. One per process. During the unwinding
// of an exception it does neither: the caller ends the world with abort_mpi.
std::unique_ptr<Communicator> open_mpi(const MpiOptions& options);
// Ends every rank's process with `exit_code`, now.
void abort_mpi(int exit_code);

}  // namespace chexnet
