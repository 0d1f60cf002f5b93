// The communicator over MPI on host memory. It is compiled once for each ABI,
// Open MPI's and MPICH's. Both advance non-blocking collectives only inside MPI
// calls, hence poll(); every wait is a test loop with a deadline, because a
// lost link otherwise hangs in silence. A call itself may not return, as where
// a stranger's bytes hold up MPI's progress: call() has a deadline for that.
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/half.hpp"
#include "chexnet/comm/watch/hard_exit.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launcher_codes.hpp"
#include "chexnet/launch/launchers.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/launch/timeouts.hpp"
#include "library_names.hpp"

namespace chexnet {
namespace {

void check_mpi(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(rc, text, &length);
  throw DeviceError(
      "[mpi] {}: {}. Hint: see the first error of the other ranks", what,
      std::string(text, static_cast<size_t>(length)));
}

// While it lives: MPI_Finalize or MPI_Abort, which in Open MPI wait for mpirun.
// That may be stopped, or held up by a stranger's connection. After the limit
// this process logs `error`, if there is one, and exits with `exit_code`, as
// nothing is left to do. A rank's output goes through mpirun; where that hangs,
// our parent says what happened (launch/rank_processes.cpp).
class LauncherDeadline {
 public:
  LauncherDeadline(double timeout_s, ExitCode exit_code,
                   const std::string& error)
      : thread_([=](const std::stop_token& stop) {
          constexpr useconds_t kLook_us = 10'000;
          CollectiveDeadline deadline(timeout_s, now_s());
          while (!stop.stop_requested()) {
            if (deadline.is_over(deadline.waited_s(now_s())))
              leave(exit_code, error);
            ::usleep(kLook_us);
          }
        }) {}

 private:
  [[noreturn]] static void leave(ExitCode exit_code, const std::string& error) {
    if (!error.empty()) {
      constexpr int kLogTimeout_s = 5;  // the log may hang, too
      exit_within(kLogTimeout_s, static_cast<int>(exit_code));
      log_error(error);
    }
    const pid_t launcher = getppid();
    if (!started_by_parent(process_environment()) && is_mpi_launcher(launcher))
      kill(launcher, SIGKILL);
    ::_exit(code_for_launcher(static_cast<int>(exit_code)));
  }

  std::jthread thread_;
};

void abort_all(ExitCode exit_code) {
  constexpr double kAbort_s = 5;  // it takes milliseconds
  const LauncherDeadline deadline(kAbort_s, exit_code, "");
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(exit_code));
}

// Sums of 16-bit floats are formed in fp32 and rounded once per addition; MPI
// has no such types.
template <uint16_t (*To)(float), float (*From)(uint16_t)>
void sum_halves(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const uint16_t*>(in);
  auto* b = static_cast<uint16_t*>(inout);
  for (int i = 0; i < *count; ++i) b[i] = To(From(a[i]) + From(b[i]));
}

// Open MPI adds up buffers that are in place, and those of under four ranks,
// along a binomial tree and sends them back down (coll/libnbc/nbc_iallreduce.c
// of 4.1): between two hosts each link carries all bytes, one way after the
// other, and between more the root's link several times as many. In a ring each
// carries 2 (n - 1) / n of them, both ways at once. A variable of the library
// chooses; it is set for large sums alone, as a tree has fewer hops. Where
// there is no such variable (MPICH), or the user set it, all stays as it is.
class RingSwitch {
 public:
  RingSwitch() {
    int provided = 0, variable = 0, count = 0, value = 0;
    if (MPI_T_init_thread(MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
      return;
    is_open_ = true;
    if (MPI_T_cvar_get_index("coll_libnbc_iallreduce_algorithm", &variable) !=
            MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(variable, nullptr, &handle_, &count) !=
            MPI_SUCCESS)
      return;
    can_set_ = count == 1 && MPI_T_cvar_read(handle_, &value) == MPI_SUCCESS &&
               value == 0;
  }
  ~RingSwitch() {
    if (handle_ != MPI_T_CVAR_HANDLE_NULL) MPI_T_cvar_handle_free(&handle_);
    if (is_open_) MPI_T_finalize();
  }
  RingSwitch(const RingSwitch&) = delete;
  RingSwitch& operator=(const RingSwitch&) = delete;

  // In place.
  int iallreduce(void* data, int count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request) {
    constexpr int kLeastBytes = 65536, kOfLibrary = 0, kRing = 1;
    int size = 0;
    MPI_Type_size(type, &size);
    const bool in_ring = can_set_ && count >= kLeastBytes / size;
    if (in_ring) set(kRing);
    const int rc =
        MPI_Iallreduce(MPI_IN_PLACE, data, count, type, op, comm, request);
    if (in_ring) set(kOfLibrary);
    return rc;
  }

 private:
  void set(int algorithm) { MPI_T_cvar_write(handle_, &algorithm); }

  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
  bool is_open_ = false, can_set_ = false;
};

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(const MpiOptions& options)
      : timeout_s_(options.timeout_s), chosen_by_(options.chosen_by) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &world_.rank);
    MPI_Comm_size(comm_, &world_.size);
    // Not OMPI_COMM_WORLD_LOCAL_RANK: srun --mpi=pmix does not set it.
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, world_.rank, MPI_INFO_NULL,
                        &host);
    MPI_Comm_rank(host, &world_.local_rank);
    MPI_Comm_size(host, &world_.local_size);
    MPI_Comm_free(&host);
    ring_.emplace();
    MPI_Op_create(sum_halves<to_bf16, from_bf16>, 1, &sum_bf16_);
    MPI_Op_create(sum_halves<to_fp16, from_fp16>, 1, &sum_fp16_);
    blocked_ = hang_deadline(
        timeout_s_ + kBlockedCallAfter_s,
        formatted("[mpi] rank {} on {}: a call of MPI did not return in {} s. "
                  "Hint: a stranger's connection to one of MPI's ports{} may "
                  "hold it up; else raise launch.timeout_s",
                  world_.rank, host_name(), fixed(timeout_s_, 0),
                  on_one_host() ? "" : " or a broken network"));
  }

  ~MpiCommunicator() override {
    // The others do not know of the failure and would wait: the process is
    // about to be ended by chexnet_abort_mpi.
    if (aborted_ || std::uncaught_exceptions() > 0) return;
    // A rank that exits early makes mpirun kill the others within 2 s, so all
    // leave together.
    try {
      MPI_Request request = MPI_REQUEST_NULL;
      const char* what = "barrier before MPI_Finalize";
      call(what, [&] { return MPI_Ibarrier(comm_, &request); });
      wait(request, what);
    } catch (const Error&) {
      abort_all(ExitCode::kHang);
    }
    const LauncherDeadline deadline(
        timeout_s_, ExitCode::kHang,
        formatted("[mpi] rank {} on {} did its work, and MPI did not let it "
                  "end within {} s. Hint: mpirun was stopped, or a stranger "
                  "kept a connection to one of its ports",
                  world_.rank, host_name(), fixed(timeout_s_, 0)));
    ring_.reset();
    MPI_Op_free(&sum_bf16_);
    MPI_Op_free(&sum_fp16_);
    MPI_Comm_free(&comm_);
    MPI_Finalize();
  }

  const World& world() const override { return world_; }
  void abort() noexcept override { aborted_ = true; }
  uint64_t next_sequence() override { return ++sequence_; }
  void set_compression(GradientCompression compression) override {
    compression_ = compression;
  }

  void start(const GradientBuffer& buffer) override {
    ++sequence_;
    if (world_.size == 1) return;
    auto& pending = pending_.emplace_back(
        Pending{buffer, {}, MPI_REQUEST_NULL, sequence_, now_s()});
    // Divided before the sum: while the gradients are in the caches and nobody
    // waits, and no sum overflows where the mean does not.
    if (compression_ != GradientCompression::kNone && !buffer.exact &&
        buffer.type == ElementType::kF32) {
      const float scale = 1.0f / static_cast<float>(world_.size);
      const auto* values = static_cast<const float*>(buffer.data);
      pending.halves.resize(buffer.count);
      if (compression_ == GradientCompression::kBf16)
        std::transform(values, values + buffer.count, pending.halves.begin(),
                       [scale](float v) { return to_bf16(v * scale); });
      else
        std::transform(values, values + buffer.count, pending.halves.begin(),
                       [scale](float v) { return to_fp16(v * scale); });
      all_reduce(
          pending, pending.halves.data(), MPI_UINT16_T,
          compression_ == GradientCompression::kBf16 ? sum_bf16_ : sum_fp16_);
    } else {
      const bool is_double = buffer.type == ElementType::kF64;
      if (is_double)
        divide(static_cast<double*>(buffer.data), buffer.count);
      else
        divide(static_cast<float*>(buffer.data), buffer.count);
      all_reduce(pending, buffer.data, is_double ? MPI_DOUBLE : MPI_FLOAT,
                 MPI_SUM);
    }
  }

  void poll() override {
    for (auto& pending : pending_) {
      int done = 0;
      if (pending.request == MPI_REQUEST_NULL) continue;
      call("all-reduce", [&] {
        return MPI_Test(&pending.request, &done, MPI_STATUS_IGNORE);
      });
      if (done) record(pending);
    }
  }

  void finish() override {
    if (pending_.empty()) return;
    const Profiler::Span span(profiler_, Phase::kAllReduceWait);
    for (auto& pending : pending_) {
      if (pending.request != MPI_REQUEST_NULL) {
        wait(pending.request, "gradient all-reduce", pending.sequence);
        record(pending);
      }
      if (pending.halves.empty()) continue;
      auto* values = static_cast<float*>(pending.buffer.data);
      std::transform(
          pending.halves.begin(), pending.halves.end(), values,
          compression_ == GradientCompression::kBf16 ? from_bf16 : from_fp16);
    }
    pending_.clear();
  }

  void all_reduce(std::span<double> values, ReduceOp op) override {
    MPI_Request request = MPI_REQUEST_NULL;
    call("all-reduce", [&] {
      return MPI_Iallreduce(MPI_IN_PLACE, values.data(),
                            static_cast<int>(values.size()), MPI_DOUBLE,
                            op == ReduceOp::kSum ? MPI_SUM : MPI_MAX, comm_,
                            &request);
    });
    wait_recorded(request, "all-reduce of control values");
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    constexpr size_t kPiece = size_t{1} << 28;  // MPI counts are int
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      MPI_Request request = MPI_REQUEST_NULL;
      const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
      call("broadcast", [&] {
        return MPI_Ibcast(piece.data(), static_cast<int>(piece.size()),
                          MPI_BYTE, root, comm_, &request);
      });
      wait_recorded(request, "broadcast");
    }
  }

  std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte> bytes) override {
    const auto ranks = static_cast<size_t>(world_.size);
    const int mine = static_cast<int>(bytes.size());
    std::vector<int> counts(ranks), offsets(ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    call("gather", [&] {
      return MPI_Iallgather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, comm_,
                            &request);
    });
    wait_recorded(request, "gather of sizes");
    int64_t total = 0;
    for (size_t r = 0; r < ranks; ++r) {
      offsets[r] = static_cast<int>(total);
      total += counts[r];
    }
    if (total > INT32_MAX)
      throw DeviceError(
          "[mpi] a gather of more than 2 GiB. Hint: use fewer images per "
          "evaluation");
    std::vector<std::byte> all(static_cast<size_t>(total));
    call("gather", [&] {
      return MPI_Iallgatherv(bytes.data(), mine, MPI_BYTE, all.data(),
                             counts.data(), offsets.data(), MPI_BYTE, comm_,
                             &request);
    });
    wait_recorded(request, "gather");
    std::vector<std::vector<std::byte>> out(ranks);
    for (size_t r = 0; r < ranks; ++r)
      out[r].assign(all.begin() + offsets[r],
                    all.begin() + offsets[r] + counts[r]);
    return out;
  }

  void barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    call("barrier", [&] { return MPI_Ibarrier(comm_, &request); });
    wait_recorded(request, "barrier");
  }

  std::string description() const override {
    const std::string layer = messaging_layer();
    return "MPI on host memory, " + library_version() +
           (layer.empty() ? "" : ", " + layer) +
           (chosen_by_.empty() ? "" : " (chosen: " + chosen_by_ + ")");
  }

 private:
  struct Pending {
    GradientBuffer buffer;
    std::vector<uint16_t> halves;
    MPI_Request request;
    uint64_t sequence;
    double start_s;
  };

  // A call of MPI, for `what`.
  template <class Call>
  void call(const char* what, Call mpi) {
    const auto wait = blocked_->wait();
    check_mpi(mpi(), what);
  }

  // In place, of as many elements as `pending`'s buffer has.
  void all_reduce(Pending& pending, void* data, MPI_Datatype type, MPI_Op op) {
    call("all-reduce", [&] {
      return ring_->iallreduce(data, static_cast<int>(pending.buffer.count),
                               type, op, comm_, &pending.request);
    });
  }

  // This rank sees it at its next poll, so an upper bound of the transfer.
  void record(const Pending& pending) {
    if (profiler_ == nullptr) return;
    const auto bucket = static_cast<int32_t>(&pending - pending_.data());
    profiler_->add({"all-reduce of bucket", bucket, Track::kNetwork, bucket,
                    pending.start_s, now_s()});
  }

  // By the number of ranks.
  template <class T>
  void divide(T* values, size_t count) const {
    const T factor = T{1} / static_cast<T>(world_.size);
    for (size_t i = 0; i < count; ++i) values[i] *= factor;
  }

  void wait_recorded(MPI_Request& request, const char* what) {
    const Profiler::Span span(profiler_, Phase::kControl, what);
    wait(request, what, ++sequence_);
  }

  void wait(MPI_Request& request, const char* what, uint64_t sequence = 0) {
    if (profiler_ != nullptr) profiler_->entered_collective(sequence);
    CollectiveDeadline deadline(timeout_s_, now_s());
    for (;;) {
      int done = 0;
      call(what, [&] { return MPI_Test(&request, &done, MPI_STATUS_IGNORE); });
      if (done) return;

      const double waited = deadline.waited_s(now_s());
      if (deadline.is_over(waited))
        throw HangError(
            "[mpi] rank {}: {} (collective {}) did not finish in {} s. Hint: "
            "another rank has stopped{}; see the other ranks' logs, or raise "
            "launch.timeout_s",
            world_.rank, what, sequence, fixed(timeout_s_, 0),
            on_one_host() ? "" : " or a link is down");

      // Ranks may share cores: give them away while waiting, and sleep once it
      // takes long.
      if (waited > 0.002)
        ::usleep(50);
      else
        ::sched_yield();
    }
  }

  bool on_one_host() const { return world_.local_size == world_.size; }

  double timeout_s_;
  std::string chosen_by_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::optional<RingSwitch> ring_;  // while MPI is there
  MPI_Op sum_bf16_ = MPI_OP_NULL, sum_fp16_ = MPI_OP_NULL;
  World world_;
  GradientCompression compression_ = GradientCompression::kNone;
  uint64_t sequence_ = 0;
  bool aborted_ = false;
  std::vector<Pending> pending_;
  std::unique_ptr<WaitDeadline> blocked_;  // of each call of MPI
};

}  // namespace
}  // namespace chexnet

extern "C" chexnet::Communicator* chexnet_open_mpi(
    const chexnet::MpiOptions* options) {
  return new chexnet::MpiCommunicator(*options);
}

extern "C" void chexnet_mpi_library(char* text, size_t size) {
  const std::string version = chexnet::library_text();
  text[version.copy(text, size - 1)] = 0;
}

extern "C" void chexnet_abort_mpi(int exit_code) {
  chexnet::abort_all(static_cast<chexnet::ExitCode>(exit_code));
}
