// A rank of a world of threads whose gradients are on a fake GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "chexnet/comm/half.hpp"
#include "chexnet/core/error.hpp"
#include "fakes/fake_cudart/fake_cuda.hpp"
#include "fakes/fake_cudart/watch.hpp"
#include "model/cuda/nccl_communicator.hpp"
#include "support/forwarding_communicator.hpp"

namespace chexnet {

// A communicator that somebody else owns. Counts collectives as MPI's does.
class Borrowed final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  uint64_t next_sequence() override { return ++sequence_; }
  std::string description() const override { return "threads"; }

 private:
  uint64_t sequence_ = 0;
};

// Work on a CUDA stream; a kernel of a fake GPU. It stays, as a kernel's code
// does: a broken GPU never comes to it.
inline void launch(cudaStream_t stream, std::function<void()> work) {
  static std::mutex mutex;
  static auto* const kernels = new std::deque<std::function<void()>>;
  std::function<void()>* kernel = nullptr;
  {
    const std::lock_guard lock(mutex);
    kernel = &kernels->emplace_back(std::move(work));
  }
  cudaLaunchHostFunc(
      stream,
      [](void* data) { (*static_cast<std::function<void()>*>(data))(); },
      kernel);
}

// What libchexnet_cuda.so does with kernels of LibTorch, by loops.
inline DeviceFunctions fake_device_functions(cudaStream_t compute) {
  using fake_cuda::Use;
  DeviceFunctions functions;
  functions.compute_stream = [compute] { return compute; };
  functions.allocate = [](size_t bytes, cudaStream_t) {
    void* memory = nullptr;
    cudaMalloc(&memory, bytes);
    return memory;
  };
  functions.release = [](void* memory) { cudaFree(memory); };
  functions.pack = [](const float* from, void* to, size_t count, float scale,
                      GradientCompression format, cudaStream_t stream) {
    fake_cuda::uses(
        stream, "pack",
        {{from, 4 * count, Use::kRead}, {to, 2 * count, Use::kWrite}});
    launch(stream, [=] {
      const auto half =
          format == GradientCompression::kBf16 ? to_bf16 : to_fp16;
      for (size_t i = 0; i < count; ++i)
        static_cast<uint16_t*>(to)[i] = half(from[i] * scale);
    });
  };
  functions.unpack = [](const void* from, float* to, size_t count,
                        GradientCompression format, cudaStream_t stream) {
    fake_cuda::uses(
        stream, "unpack",
        {{from, 2 * count, Use::kRead}, {to, 4 * count, Use::kWrite}});
    launch(stream, [=] {
      const auto whole =
          format == GradientCompression::kBf16 ? from_bf16 : from_fp16;
      for (size_t i = 0; i < count; ++i)
        to[i] = whole(static_cast<const uint16_t*>(from)[i]);
    });
  };
  return functions;
}

// The compute stream of a rank and its flat buffer.
class GpuRank {
 public:
  GpuRank(Communicator& world, size_t count, double timeout_s = 60)
      : count_(count) {
    // One per rank: to free memory waits for all CUDA streams of a device, and
    // those of other ranks may wait for this one.
    const int device = world.rank();
    if (cudaSetDevice(device) != cudaSuccess)
      throw DeviceError("more ranks than fake GPUs");
    cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking);
    cudaMalloc(reinterpret_cast<void**>(&flat_), count * sizeof(float));
    comm_ = make_nccl_communicator(std::make_unique<Borrowed>(world), device,
                                   timeout_s, fake_device_functions(compute_));
    profiler_.set_slot(&slot_);
    comm_->set_profiler(&profiler_);
  }
  // The buffer stays: to free it would wait for the GPU, which may hang.
  ~GpuRank() {
    comm_.reset();
    cudaStreamDestroy(compute_);
  }
  GpuRank(const GpuRank&) = delete;
  GpuRank& operator=(const GpuRank&) = delete;

  Communicator& comm() { return *comm_; }
  cudaStream_t compute() const { return compute_; }
  float* flat() const { return flat_; }
  size_t count() const { return count_; }
  Profiler& profiler() { return profiler_; }
  // What the other ranks' watch would see.
  const PhaseSlot& slot() const { return slot_; }

  // "Backward": writes [begin, end).
  void write(size_t begin, size_t end, float value) {
    fake_cuda::uses(
        compute_, "backward",
        {{flat_ + begin, 4 * (end - begin), fake_cuda::Use::kWrite}});
    launch(compute_, [flat = flat_, begin, end, value] {
      for (size_t i = begin; i < end; ++i) flat[i] = value;
    });
  }
  // The compute stream fills `own`, gathers, and reads all ranks'.
  std::shared_ptr<std::vector<double>> gather(const std::vector<double>& own) {
    const size_t bytes = own.size() * sizeof(double);
    const auto ranks = static_cast<size_t>(comm_->size());
    double *sent = nullptr, *all = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&sent), bytes);
    cudaMalloc(reinterpret_cast<void**>(&all), ranks * bytes);
    fake_cuda::uses(compute_, "forward",
                    {{sent, bytes, fake_cuda::Use::kWrite}});
    launch(compute_, [own, sent] { std::ranges::copy(own, sent); });
    comm_->gather(sent, all, own.size());
    auto values = std::make_shared<std::vector<double>>(ranks * own.size());
    fake_cuda::uses(compute_, "normalize",
                    {{all, ranks * bytes, fake_cuda::Use::kRead}});
    launch(compute_, [all, values] {
      std::copy_n(all, values->size(), values->begin());
    });
    return values;
  }
  // "Optimizer": a copy of the buffer, complete after the compute stream. The
  // kernel, which may run long after a test has failed, shares it.
  using Values = std::shared_ptr<std::vector<float>>;
  Values read() {
    auto values = std::make_shared<std::vector<float>>(count_);
    fake_cuda::uses(compute_, "optimizer",
                    {{flat_, 4 * count_, fake_cuda::Use::kRead}});
    launch(compute_, [flat = flat_, values] {
      for (size_t i = 0; i < values->size(); ++i) (*values)[i] = flat[i];
    });
    return values;
  }

 private:
  size_t count_;
  cudaStream_t compute_ = nullptr;
  float* flat_ = nullptr;
  PhaseSlot slot_;
  Profiler profiler_;
  std::unique_ptr<Communicator> comm_;
};

}  // namespace chexnet
