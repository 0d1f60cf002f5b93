// The CUDA side of the program: devices and pinned memory. Gradients over NCCL
// are beside.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <cstdio>
#include <exception>

#include "check_cuda.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "device_functions.hpp"
#include "nccl_communicator.hpp"
#include "own_kernels.hpp"
#include "runtime_problem.hpp"

namespace chexnet {
namespace {

namespace Allocator = c10::cuda::CUDACachingAllocator;

class PinnedMemory final : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t) override {
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    return memory;
  }
  void do_deallocate(void* memory, size_t, size_t) override {
    // Freeing waits for the GPU. Not during an exception: its error is reported
    // first, and the process is about to end.
    if (std::uncaught_exceptions() == 0) cudaFreeHost(memory);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

c10::DeviceIndex selected() {
  int device = 0;
  check_cuda(cudaGetDevice(&device));
  return static_cast<c10::DeviceIndex>(device);
}

// Captures allocate from a pool of the recorder's, for which memory that no
// tensor uses is given back to the driver first.
class GraphRecorder final : public Recorder {
 public:
  GraphRecorder() = default;
  // To end a graph that the GPU computes may wait for it: not where an error is
  // on its way.
  ~GraphRecorder() override {
    if (std::uncaught_exceptions() == 0) return;
    for (auto& graph : graphs_) static_cast<void>(graph.release());
  }
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;

  // The upload takes the memory that the first launch would.
  size_t record(const std::function<void()>& work) override {
    Allocator::emptyCache();
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    try {
      graph->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      work();
      graph->capture_end();
      check_cuda(
          cudaGraphUpload(graph->raw_cuda_graph_exec(), current_stream()));
    } catch (...) {
      give_up(*graph);
      throw;
    }
    graphs_.push_back(std::move(graph));
    return graphs_.size() - 1;
  }
  void replay(size_t recording) override { graphs_.at(recording)->replay(); }

 private:
  // Where CUDA ends a capture without a graph, LibTorch does not tell its
  // allocator, which then would think for good that a capture is under way.
  void give_up(at::cuda::CUDAGraph& graph) const {
    try {
      graph.capture_end();
    } catch (const c10::Error&) {
    }
    cudaGetLastError();
    try {
      Allocator::endAllocateToPool(selected(), pool_);
      Allocator::releasePool(selected(), pool_);
    } catch (const c10::Error&) {  // it was told
    }
  }

  at::cuda::MempoolId_t pool_ = at::cuda::graph_pool_handle();
  std::vector<std::unique_ptr<at::cuda::CUDAGraph>> graphs_;
};

class Library final : public CudaLibrary {
 public:
  std::string device_kind() const override { return "cuda"; }
  GpuProblem problem() const override {
    GpuProblem of_runtime = runtime_problem();
    if (!of_runtime.empty()) return of_runtime;
    // LibTorch makes its side of CUDA once, when first asked; a query before
    // this library is open leaves it without one for good.
    if (at::hasCUDA()) return {};
    return {"LibTorch has no CUDA side, although the CUDA runtime shows a GPU",
            "is libtorch_cuda.so of another build? scripts/setup --gpu --cuda "
            "takes the right one"};
  }
  int device_count() const override {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count));
    return count;
  }
  GpuInfo info(int device) const override {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device));
    std::string uuid = "GPU-";
    for (int i = 0; i < 16; ++i) {
      char digits[4];
      std::snprintf(digits, sizeof digits, "%02x",
                    static_cast<unsigned char>(properties.uuid.bytes[i]));
      uuid += digits;
      if (i == 3 || i == 5 || i == 7 || i == 9) uuid += "-";
    }
    const std::string slot = std::to_string(properties.pciDomainID) + ":" +
                             std::to_string(properties.pciBusID) + ":" +
                             std::to_string(properties.pciDeviceID);
    int clock_khz = 0;
    check_cuda(
        cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device));
    return {properties.name,
            uuid,
            slot,
            properties.major,
            properties.minor,
            properties.totalGlobalMem,
            properties.multiProcessorCount,
            1e3 * clock_khz};
  }
  void select(int device) override { check_cuda(cudaSetDevice(device)); }
  std::string kernels_problem() override { return chexnet::kernels_problem(); }
  std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Communicator> host,
                                          int device,
                                          double timeout_s) override {
    return make_nccl_communicator(std::move(host), device, timeout_s,
                                  device_functions(device));
  }
  std::unique_ptr<Recorder> make_recorder() override {
    return std::make_unique<GraphRecorder>();
  }
  std::pmr::memory_resource* pinned_memory() override { return &pinned_; }
  void mark_ranges(Profiler& profiler) override {
    profiler.set_markers(
        [](const char* name) {
          torch::profiler::impl::cudaStubs()->rangePush(name);
        },
        [] { torch::profiler::impl::cudaStubs()->rangePop(); });
  }
  void synchronize() override { check_cuda(cudaDeviceSynchronize()); }
  size_t free_bytes() const override {
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total));
    const auto stats = Allocator::getDeviceStats(selected());
    const auto unused = stats.reserved_bytes[kAll].current -
                        stats.allocated_bytes[kAll].current;
    return free + static_cast<size_t>(unused);
  }
  size_t peak_bytes() const override {
    return static_cast<size_t>(
        Allocator::getDeviceStats(selected()).allocated_bytes[kAll].peak);
  }
  size_t peak_held_bytes() const override {
    return static_cast<size_t>(
        Allocator::getDeviceStats(selected()).reserved_bytes[kAll].peak);
  }
  void restart_peak() override {
    Allocator::emptyCache();
    Allocator::resetPeakStats(selected());
  }
  std::string versions() const override {
    int driver = 0, runtime = 0, nccl = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    ncclGetVersion(&nccl);
    return "CUDA driver " + std::to_string(driver) + ", runtime " +
           std::to_string(runtime) + " (built with " +
           std::to_string(CUDART_VERSION) + "), NCCL " + std::to_string(nccl) +
           " (built with " + std::to_string(NCCL_VERSION_CODE) + ")";
  }

 private:
  static constexpr auto kAll =
      static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

  PinnedMemory pinned_;
};

}  // namespace
}  // namespace chexnet

extern "C" chexnet::CudaLibrary* chexnet_cuda_library() {
  static chexnet::Library library;
  return &library;
}
