// The fake GPU with the interface of the CUDA library. Its device type is
// PrivateUse1, which LibTorch keeps for devices of other projects.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "chexnet/comm/cuda_library.hpp"
#include "fakes/fake_cudart/fake_cuda.hpp"
#include "fakes/fake_gpu/agreement_log.hpp"
#include "fakes/fake_gpu/allocator.hpp"
#include "fakes/fake_gpu/communication.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "fakes/fake_gpu/memory.hpp"

namespace fake_gpu {
namespace {

class PinnedResource final : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t) override {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    return memory;
  }
  void do_deallocate(void* memory, size_t, size_t) override {
    // Freeing waits for the GPU: not where an error is on its way.
    if (std::uncaught_exceptions() == 0) cudaFreeHost(memory);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

// Graphs of the fake runtime, with a pool of the fake allocator's.
class GraphRecorder final : public chexnet::Recorder {
 public:
  GraphRecorder() = default;
  ~GraphRecorder() override {
    for (cudaGraphExec_t graph : graphs_) cudaGraphExecDestroy(graph);
    release_pool(pool_);
  }
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;

  // FAKE_GPU_NO_GRAPHS=n: device n has none.
  size_t record(const std::function<void()>& work) override {
    const char* without = std::getenv("FAKE_GPU_NO_GRAPHS");
    TORCH_CHECK(
        !without || std::atoi(without) != current_stream().device_index(),
        "fake GPU: no graphs");
    cudaStream_t stream = handle_of(current_stream());
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    take_from_pool(pool_);
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    take_from_pool(0);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (!thrown) check(ended);
    if (!thrown) check(cudaGraphInstantiate(&graphs_.emplace_back(), graph, 0));
    cudaGraphDestroy(graph);
    if (thrown) std::rethrow_exception(thrown);
    return graphs_.size() - 1;
  }
  void replay(size_t recording) override {
    launch_graph(graphs_.at(recording));
  }

 private:
  int pool_ = new_pool();
  std::vector<cudaGraphExec_t> graphs_;
};

class Library final : public chexnet::CudaLibrary {
 public:
  Library() {
    register_device();
    // As a driver that is unloaded: enqueued work is not done.
    std::atexit([] { fake_cuda::break_device(cudaErrorCudartUnloading); });
  }
  std::string device_kind() const override { return "privateuseone"; }
  chexnet::GpuProblem problem() const override { return {}; }
  int device_count() const override {
    int count = 0;
    check(cudaGetDeviceCount(&count));
    return count;
  }
  chexnet::GpuInfo info(int device) const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device));
    const bool is_mig = std::getenv("FAKE_GPU_MIG") != nullptr;
    return {properties.name,
            "GPU-fake-" + std::to_string(device),
            std::to_string(is_mig ? 0 : device),
            properties.major,
            properties.minor,
            memory_bytes(),
            1,
            1e9};
  }
  void select(int device) override { check(cudaSetDevice(device)); }
  std::unique_ptr<chexnet::Recorder> make_recorder() override {
    return std::make_unique<GraphRecorder>();
  }
  std::pmr::memory_resource* pinned_memory() override { return &pinned_; }
  std::string kernels_problem() override {
    const char* problem = std::getenv("FAKE_GPU_KERNELS_PROBLEM");
    return problem == nullptr ? "" : problem;
  }
  void mark_ranges(chexnet::Profiler&) override {}
  void synchronize() override { check(cudaDeviceSynchronize()); }
  size_t free_bytes() const override { return fake_gpu::free_bytes(); }
  size_t peak_bytes() const override { return fake_gpu::peak_bytes(); }
  size_t peak_held_bytes() const override {
    return fake_gpu::peak_held_bytes();
  }
  void restart_peak() override { fake_gpu::restart_peak(); }
  std::string versions() const override { return "a fake GPU"; }
  std::unique_ptr<chexnet::Communicator> make_nccl(
      std::unique_ptr<chexnet::Communicator> host, int device,
      double timeout_s) override {
    if (const char* file = std::getenv("FAKE_GPU_STEP_LOG"))
      host = log_agreements(std::move(host), file);
    return chexnet::make_nccl_communicator(std::move(host), device, timeout_s,
                                           device_functions());
  }

 private:
  PinnedResource pinned_;
};

}  // namespace
}  // namespace fake_gpu

extern "C" chexnet::CudaLibrary* chexnet_cuda_library() {
  static fake_gpu::Library library;
  return &library;
}
