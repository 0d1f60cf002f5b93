// Gradients travel on a separate CUDA stream:
//
//   compute  ..backward.. ready ..backward.. ready computed  waits -> optimizer
//                           |                  |               ^
//   NCCL                    +-> all-reduce ... +-> all-reduce reduced
//
// The order on the device is kept by events alone; nothing here makes the host
// wait but wait_until_finished(), which first waits for `computed` and then for
// `reduced`. So the event that does not come tells who hangs: this GPU, or the
// network and the other ranks. By the device's clock the time between the two
// is what communication costs. A gather() in the midst of computing has two
// further such events.
//
// Once aborted_, comm_ is null and the destructor does nothing. What frees a
// communicator on which something hangs may itself hang, so abort() leaves that
// to a thread as well.
#include "nccl_communicator.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/timeouts.hpp"
#include "gpu_handles.hpp"
#include "nccl_start.hpp"
#include "time_limit.hpp"

namespace chexnet {
namespace {

constexpr double kLeave_s = 10;  // for the communicator's regular end
// On a loaded host the others come to their wait so much later.
constexpr double kOthersLater_s = 3;

// By the device's clock; both have happened. Negative where `end` came first.
double seconds_between(const GpuEvent& begin, const GpuEvent& end) {
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, begin.get(), end.get()));
  return 1e-3 * static_cast<double>(ms);
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> host, int device,
                   double timeout_s, DeviceFunctions functions)
      : host_(std::move(host)),
        device_(device),
        timeout_s_(timeout_s),
        gpu_(std::move(functions)),
        stream_(make_communication_stream()),
        ready_(make_event(cudaEventDisableTiming)),
        joined_(make_event(cudaEventDisableTiming)),
        clock_stream_(make_communication_stream()),
        clock_(make_event(cudaEventDefault)) {
    if (size() > 1)
      comm_ = start_nccl(*host_, device, stream_.get(), timeout_s);
  }

  ~NcclCommunicator() override {
    if (std::uncaught_exceptions() > 0) abort();
    if (aborted_) return;
    try {
      leave();
    } catch (const std::exception&) {
      abort();
    }
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  const World& world() const override { return host_->world(); }
  void set_compression(GradientCompression compression) override {
    compression_ = compression;
  }
  void set_profiler(Profiler* profiler) override {
    Communicator::set_profiler(profiler);
    host_->set_profiler(profiler);
  }
  uint64_t next_sequence() override { return host_->next_sequence(); }

  void begin_step() override;
  void start(const GradientBuffer& buffer) override;
  void poll() override {}
  void finish() override;
  void gather(const double* own, double* all, size_t count) override;
  std::optional<double> wait_until_finished() override;
  void begin_recording() override;
  bool is_recording() const override { return recording_ != nullptr; }
  std::shared_ptr<Recorded> end_recording() override;
  void replayed(const std::shared_ptr<Recorded>& recorded) override;
  void abort() noexcept override;

  void all_reduce(std::span<double> values, ReduceOp op) override {
    host_->all_reduce(values, op);
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    host_->broadcast(bytes, root);
  }
  std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte> bytes) override {
    return host_->all_gather(bytes);
  }
  void barrier() override { host_->barrier(); }
  std::string description() const override;

 private:
  void leave();
  // Between the two the compute stream waits for a collective.
  struct Pause {
    GpuEvent computed = make_event(cudaEventDefault),
             arrived = make_event(cudaEventDefault);
  };
  // Between the two a bucket travels.
  struct Transfer {
    GpuEvent begun = make_event(cudaEventDefault),
             ended = make_event(cudaEventDefault);
  };
  // What one step leaves on the two CUDA streams; kept for a later step, or for
  // the replays of its recording.
  struct Marks : Recorded {
    GpuEvent begun;  // null: begin_step() was not called
    std::deque<Pause> gathers;
    std::deque<Transfer> transfers;  // of buckets
    size_t gathered = 0, transferred = 0;
    Pause gradients;
    bool is_recorded = false;
  };
  using SharedMarks = std::shared_ptr<Marks>;
  Marks& marks_of_this_step();
  // For the host, which looks at it.
  void record(const GpuEvent& event, cudaStream_t stream) const;
  // Our CUDA stream goes on when the compute stream has done its work so far.
  void wait_for_compute();
  // And the other way round.
  void wait_on_device(const Pause& pause);
  void all_reduce(const GradientBuffer& buffer);
  void all_reduce_packed(const GradientBuffer& buffer);
  void* staging(size_t bytes);
  // `computed`: for the HangError, the work before the wait and what it waits
  // for.
  double wait_for(const Pause& pause, const std::string& computed);
  // Adds what the GPU has done in a step to the timeline that is recorded.
  void show(const Marks& marks);
  // `what` is the beginning of the HangError.
  // The deadline is `longer_s` later than that of a collective.
  void wait_for(const GpuEvent& event, double longer_s, const std::string& what,
                const std::string& hint);

  // Calls NCCL, which may block there where the user has it connect late
  // (nccl_start.cpp): observers see a wait for other ranks.
  template <class Call>
  void launch(Call call) {
    const Profiler::Span span(profiler_, Phase::kAllReduceWait);
    check_nccl(call(), comm_, rank());
  }

  std::unique_ptr<Communicator> host_;
  int device_;
  double timeout_s_;
  double longest_computing_s_ = 0;  // of the waits for `computed`
  DeviceFunctions gpu_;
  GpuStream stream_;
  GpuEvent ready_, joined_;  // for the other CUDA stream alone
  GpuStream clock_stream_;   // always idle, so clock_ happens at once
  GpuEvent clock_;
  std::deque<SharedMarks> waited_for_later_;  // finish() by finish()
  std::vector<SharedMarks> unused_;  // at its end that of this step, once begun
  SharedMarks recording_;            // null: nothing is recorded
  ncclComm_t comm_ = nullptr;
  bool aborted_ = false;
  // Of 16-bit values on their way; used bucket after bucket, in the CUDA
  // stream's order.
  void* staging_ = nullptr;
  size_t staging_bytes_ = 0;
  GradientCompression compression_ = GradientCompression::kNone;
};

// After what a failed step has left on the CUDA stream.
void NcclCommunicator::leave() {
  if (comm_ == nullptr) return;
  const auto left = within(
      kLeave_s, [comm = comm_, device = device_, stream = stream_.get()] {
        return cudaSetDevice(device) == cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess &&
               ncclCommFinalize(comm) == ncclSuccess &&
               ncclCommDestroy(comm) == ncclSuccess;
      });
  if (!left)  // the thread still looks at it
    static_cast<void>(stream_.release());
  if (left && staging_ != nullptr) gpu_.release(staging_);
}

void NcclCommunicator::begin_step() {
  Marks& marks = marks_of_this_step();
  if (!marks.begun) marks.begun = make_event(cudaEventDefault);
  record(marks.begun, gpu_.compute_stream());
}

void NcclCommunicator::start(const GradientBuffer& buffer) {
  assert(!aborted_);
  if (size() == 1) return;
  Marks& marks = marks_of_this_step();
  if (marks.transferred == marks.transfers.size())
    marks.transfers.emplace_back();
  const Transfer& transfer = marks.transfers[marks.transferred++];
  wait_for_compute();
  record(transfer.begun, stream_.get());
  all_reduce(buffer);
  record(transfer.ended, stream_.get());
}

void NcclCommunicator::all_reduce(const GradientBuffer& buffer) {
  if (compression_ != GradientCompression::kNone && !buffer.exact &&
      buffer.type == ElementType::kF32)
    return all_reduce_packed(buffer);
  launch([&] {
    return ncclAllReduce(
        buffer.data, buffer.data, buffer.count,
        buffer.type == ElementType::kF64 ? ncclFloat64 : ncclFloat32, ncclAvg,
        comm_, stream_.get());
  });
}

// Divided before the 16-bit sum, so that it cannot overflow where the mean does
// not.
void NcclCommunicator::all_reduce_packed(const GradientBuffer& buffer) {
  auto* values = static_cast<float*>(buffer.data);
  void* halves = staging(buffer.count * sizeof(uint16_t));
  gpu_.pack(values, halves, buffer.count, 1.0f / static_cast<float>(size()),
            compression_, stream_.get());
  launch([&] {
    return ncclAllReduce(
        halves, halves, buffer.count,
        compression_ == GradientCompression::kBf16 ? ncclBfloat16 : ncclFloat16,
        ncclSum, comm_, stream_.get());
  });
  gpu_.unpack(halves, values, buffer.count, compression_, stream_.get());
}

void* NcclCommunicator::staging(size_t bytes) {
  if (bytes <= staging_bytes_) return staging_;
  if (staging_ != nullptr) gpu_.release(std::exchange(staging_, nullptr));
  staging_bytes_ = 0;
  staging_ = gpu_.allocate(bytes, stream_.get());
  staging_bytes_ = bytes;
  return staging_;
}

NcclCommunicator::Marks& NcclCommunicator::marks_of_this_step() {
  if (recording_) return *recording_;
  if (unused_.empty()) unused_.push_back(std::make_shared<Marks>());
  return *unused_.back();
}

void NcclCommunicator::begin_recording() {
  recording_ = std::make_shared<Marks>();
  recording_->is_recorded = true;
}

std::shared_ptr<Communicator::Recorded> NcclCommunicator::end_recording() {
  return std::exchange(recording_, nullptr);
}

void NcclCommunicator::replayed(const std::shared_ptr<Recorded>& recorded) {
  waited_for_later_.push_back(std::static_pointer_cast<Marks>(recorded));
}

// In a recording an event is either for its other CUDA streams, or for an
// observer from outside.
void NcclCommunicator::record(const GpuEvent& event,
                              cudaStream_t stream) const {
  check_cuda(cudaEventRecordWithFlags(
      event.get(), stream,
      recording_ ? cudaEventRecordExternal : cudaEventRecordDefault));
}

void NcclCommunicator::wait_for_compute() {
  check_cuda(cudaEventRecord(ready_.get(), gpu_.compute_stream()));
  check_cuda(cudaStreamWaitEvent(stream_.get(), ready_.get(), 0));
}

void NcclCommunicator::wait_on_device(const Pause& pause) {
  cudaStream_t compute = gpu_.compute_stream();
  record(pause.computed, compute);
  if (size() == 1) return;
  record(pause.arrived, stream_.get());
  check_cuda(cudaEventRecord(joined_.get(), stream_.get()));
  check_cuda(cudaStreamWaitEvent(compute, joined_.get(), 0));
}

// After the gradients that travel already: two collectives at once on two CUDA
// streams could block each other.
void NcclCommunicator::gather(const double* own, double* all, size_t count) {
  assert(!aborted_ && size() > 1);
  Marks& marks = marks_of_this_step();
  if (marks.gathered == marks.gathers.size()) marks.gathers.emplace_back();
  Pause& pause = marks.gathers[marks.gathered++];
  wait_for_compute();
  launch([&] {
    return ncclAllGather(own, all, count, ncclFloat64, comm_, stream_.get());
  });
  wait_on_device(pause);
}

void NcclCommunicator::finish() {
  assert(!aborted_);
  Marks& marks = marks_of_this_step();
  wait_on_device(marks.gradients);
  if (recording_) return;
  waited_for_later_.push_back(std::move(unused_.back()));
  unused_.pop_back();
}

std::optional<double> NcclCommunicator::wait_until_finished() {
  assert(!aborted_);
  if (waited_for_later_.empty()) return std::nullopt;
  const SharedMarks marks = std::move(waited_for_later_.front());
  waited_for_later_.pop_front();
  double alone_s = 0;
  for (size_t i = 0; i < marks->gathered; ++i)
    alone_s += wait_for(marks->gathers[i],
                        "what comes before BatchNorm, "
                        "but the all-gather of moments");
  alone_s +=
      wait_for(marks->gradients, "the step, but the all-reduce of gradients");
  if (profiler_ != nullptr && profiler_->recording()) show(*marks);
  if (marks->is_recorded) return alone_s;
  marks->gathered = marks->transferred = 0;
  unused_.insert(unused_.begin(), marks);
  return alone_s;
}

// The clocks of host and GPU drift apart, so each step compares them anew.
void NcclCommunicator::show(const Marks& marks) {
  const double before = now_s();
  check_cuda(cudaEventRecord(clock_.get(), clock_stream_.get()));
  wait_for(clock_, 0,
           "[cuda] " + of_rank(rank()) + "its GPU did not answer in ",
           "nvidia-smi shows whether the GPU still answers");
  const double clock_s = (before + now_s()) / 2;
  const auto time_of = [&](const GpuEvent& event) {
    return clock_s - seconds_between(event, clock_);
  };
  const auto add = [&](const char* name, int32_t number, int32_t stream,
                       double begin_s, double end_s) {
    profiler_->add({name, number, Track::kGpu, stream, begin_s, end_s});
  };
  std::optional<double> from_s;
  if (marks.begun) from_s = time_of(marks.begun);
  const auto add_pause = [&](const Pause& pause, const char* waiting) {
    const double computed_s = time_of(pause.computed);
    if (from_s)
      add("forward and backward", -1, kComputeStream, *from_s, computed_s);
    if (size() == 1) return;
    // They may arrive before the compute stream waits for them.
    from_s = std::max(computed_s, time_of(pause.arrived));
    add(waiting, -1, kComputeStream, computed_s, *from_s);
  };
  for (size_t i = 0; i < marks.gathered; ++i)
    add_pause(marks.gathers[i], "waiting for moments");
  add_pause(marks.gradients, "waiting for gradients");
  for (size_t i = 0; i < marks.transferred; ++i)
    add("all-reduce of bucket", static_cast<int32_t>(i), kCommunicationStream,
        time_of(marks.transfers[i].begun), time_of(marks.transfers[i].ended));
}

// The host looks at both marks from outside; the device's events tell where the
// time went. Returns the seconds between them.
double NcclCommunicator::wait_for(const Pause& pause,
                                  const std::string& computed) {
  {
    const Profiler::Span span(profiler_, Phase::kBackward,
                              "computing on the GPU");
    const double start = now_s();
    // The others begin to wait, and the watchdog's clock with them, when their
    // GPUs have computed the step: the watchdog is to speak first, as it knows
    // whom they wait for.
    wait_for(pause.computed, longest_computing_s_ + kOthersLater_s,
             "[cuda] " + of_rank(rank()) +
                 "its GPU did not finish computing a step in ",
             "nvidia-smi shows whether the GPU still answers, dmesg shows Xid "
             "errors; a step that really takes as long needs a larger "
             "launch.timeout_s");
    longest_computing_s_ = std::max(longest_computing_s_, now_s() - start);
  }
  if (size() == 1) return 0;
  const uint64_t sequence = next_sequence();
  const Profiler::Span span(profiler_, Phase::kAllReduceWait);
  if (profiler_ != nullptr) profiler_->entered_collective(sequence);
  const double start = now_s();
  wait_for(pause.arrived, 0,
           "[nccl] " + of_rank(rank()) + "its GPU has computed " + computed +
               " (collective " + std::to_string(sequence) +
               ") did not finish in ",
           "another rank has stopped or a link is down; see the other ranks' "
           "logs");
  const double waited_s = now_s() - start;
  const double alone_s =
      std::max(0.0, seconds_between(pause.computed, pause.arrived));
  if (profiler_ != nullptr)
    profiler_->rebook(Phase::kBackward, Phase::kAllReduceWait,
                      alone_s - waited_s);
  return alone_s;
}

void NcclCommunicator::wait_for(const GpuEvent& event, double longer_s,
                                const std::string& what,
                                const std::string& hint) {
  CollectiveDeadline deadline(timeout_s_ + longer_s, now_s());
  while (!has_happened(event)) {
    ncclResult_t state = ncclSuccess;
    if (comm_ != nullptr)
      check_nccl(ncclCommGetAsyncError(comm_, &state), comm_, rank());
    check_nccl(state, comm_, rank());
    const double waited = deadline.waited_s(now_s());
    if (deadline.is_over(waited)) {
      abort();
      throw HangError("{}{} s. Hint: {}", what, fixed(timeout_s_, 0), hint);
    }
    // Ranks share cores with their loaders.
    if (waited > 0.002)
      ::usleep(50);
    else
      ::sched_yield();
  }
}

void NcclCommunicator::abort() noexcept {
  if (std::exchange(aborted_, true)) return;
  host_->abort();
  if (comm_ == nullptr) return;
  try {
    std::thread([comm = std::exchange(comm_, nullptr)] {
      ncclCommAbort(comm);
    }).detach();
  } catch (const std::system_error&) {
    // Without a thread the process ends without freeing NCCL's memory.
  }
}

std::string NcclCommunicator::description() const {
  if (size() == 1) return host_->description();
  int version = 0;
  ncclGetVersion(&version);
  return "NCCL " + std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100) +
         " for gradients; control: " + host_->description();
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(
    std::unique_ptr<Communicator> host, int device, double timeout_s,
    DeviceFunctions functions) {
  return std::make_unique<NcclCommunicator>(std::move(host), device, timeout_s,
                                            std::move(functions));
}

}  // namespace chexnet
