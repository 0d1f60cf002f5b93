#include "nccl_communicator.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>

#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "check_cuda.hpp"
#include "chexnet/comm/timeouts.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

void check_nccl(ncclResult_t rc, ncclComm_t comm, int rank,
                std::source_location at = std::source_location::current()) {
  if (rc == ncclSuccess || rc == ncclInProgress) return;
  throw DeviceError("[nccl] rank " + std::to_string(rank) + ": " +
                    ncclGetErrorString(rc) + " (" + at.function_name() +
                    "): " + ncclGetLastError(comm) +
                    ". Hint: NCCL_DEBUG=INFO shows more");
}

// Gradients travel on a stream of their own:
//
//   compute  ..backward.. ready ..backward.. ready ..... waits for done -> step
//                           |                  |                    ^
//   NCCL                    +-> all-reduce ... +-> all-reduce ... done
//
// The order on the device is kept by events alone. The host waits in two
// places, because a collective that a dead rank never joins would hang in
// silence: settle(), until NCCL has taken a call in, and finish(), which polls
// `done` until it has happened or the deadline has passed.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> host, int device,
                   double timeout_s)
      : host_(std::move(host)),
        device_(device),
        timeout_s_(timeout_s),
        stream_(c10::cuda::getStreamFromPool(
            true, static_cast<c10::DeviceIndex>(device))) {
    ncclUniqueId id{};
    if (rank() == 0) check_nccl(ncclGetUniqueId(&id), nullptr, rank());
    host_->broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check_nccl(ncclCommInitRankConfig(&comm_, size(), id, rank(), &config),
               comm_, rank());
    settle("initialization");
    check_cuda(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming));
    check_cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  }
  ~NcclCommunicator() override {
    cudaStreamSynchronize(stream_.stream());
    cudaEventDestroy(ready_);
    cudaEventDestroy(done_);
    ncclCommFinalize(comm_);
    ncclResult_t state = ncclInProgress;
    const double start = now_s();
    while (ncclCommGetAsyncError(comm_, &state) == ncclSuccess &&
           state == ncclInProgress && now_s() - start < 10)
      sched_yield();
    ncclCommDestroy(comm_);
  }

  const World& world() const override { return host_->world(); }
  void set_compression(GradientCompression compression) override {
    compression_ = compression;
  }
  void set_profiler(Profiler* profiler) override {
    Communicator::set_profiler(profiler);
    host_->set_profiler(profiler);
  }

  void start(const GradientBuffer& buffer) override {
    const c10::cuda::CUDAStream compute =
        c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_));
    check_cuda(cudaEventRecord(ready_, compute.stream()));
    check_cuda(cudaStreamWaitEvent(stream_.stream(), ready_, 0));
    if (compression_ == GradientCompression::kNone || buffer.exact ||
        buffer.type == ElementType::kF64) {
      const auto type =
          buffer.type == ElementType::kF64 ? ncclFloat64 : ncclFloat32;
      check_nccl(ncclAllReduce(buffer.data, buffer.data, buffer.count, type,
                               ncclAvg, comm_, stream_.stream()),
                 comm_, rank());
    } else {
      // Divided before the 16-bit sum, so that it cannot overflow where the
      // mean does not.
      const c10::cuda::CUDAStreamGuard guard(stream_);
      const at::Tensor flat = at::from_blob(
          buffer.data, {static_cast<std::int64_t>(buffer.count)},
          at::TensorOptions()
              .dtype(at::kFloat)
              .device(at::kCUDA, static_cast<c10::DeviceIndex>(device_)));
      at::Tensor half =
          (flat * (1.0 / size()))
              .to(compression_ == GradientCompression::kBf16 ? at::kBFloat16
                                                             : at::kHalf);
      check_nccl(ncclAllReduce(half.data_ptr(), half.data_ptr(), buffer.count,
                               compression_ == GradientCompression::kBf16
                                   ? ncclBfloat16
                                   : ncclFloat16,
                               ncclSum, comm_, stream_.stream()),
                 comm_, rank());
      settle("all-reduce");
      flat.copy_(half);
    }
    settle("all-reduce");
  }
  void poll() override {}
  void finish() override {
    check_cuda(cudaEventRecord(done_, stream_.stream()));
    check_cuda(cudaStreamWaitEvent(
        c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_))
            .stream(),
        done_, 0));
    // The next step's first read of a result waits on the device; here the host
    // looks whether that can ever end.
    CollectiveDeadline deadline(timeout_s_, now_s());
    while (cudaEventQuery(done_) == cudaErrorNotReady) {
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(comm_, &state);
      check_nccl(state, comm_, rank());
      if (deadline.is_over(deadline.waited_s(now_s()))) {
        ncclCommAbort(comm_);
        throw HangError("[nccl] rank " + std::to_string(rank()) +
                        ": gradient all-reduce did not finish in " +
                        fixed(timeout_s_, 0) +
                        " s. Hint: another rank has stopped or a link is down; "
                        "see the other ranks' logs");
      }
      sched_yield();
    }
  }

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
  std::string description() const override {
    int version = 0;
    ncclGetVersion(&version);
    return "NCCL " + std::to_string(version / 10000) + "." +
           std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100) +
           " for gradients; control: " + host_->description();
  }

 private:
  // A non-blocking communicator returns ncclInProgress until the call has been
  // taken in.
  void settle(const char* what) {
    ncclResult_t state = ncclInProgress;
    CollectiveDeadline deadline(timeout_s_, now_s());
    for (;;) {
      check_nccl(ncclCommGetAsyncError(comm_, &state), comm_, rank());
      if (state != ncclInProgress) break;
      if (deadline.is_over(deadline.waited_s(now_s()))) {
        ncclCommAbort(comm_);
        throw HangError("[nccl] rank " + std::to_string(rank()) + ": " + what +
                        " did not finish in " + fixed(timeout_s_, 0) +
                        " s. Hint: can the hosts reach each other? "
                        "NCCL_DEBUG=INFO shows more");
      }
      sched_yield();
    }
    check_nccl(state, comm_, rank());
  }

  std::unique_ptr<Communicator> host_;
  int device_;
  double timeout_s_;
  c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
  cudaEvent_t ready_ = nullptr, done_ = nullptr;
  GradientCompression compression_ = GradientCompression::kNone;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(
    std::unique_ptr<Communicator> host, int device, double timeout_s) {
  return std::make_unique<NcclCommunicator>(std::move(host), device, timeout_s);
}

}  // namespace chexnet
