// The CUDA side of the program: devices and pinned memory. Gradients over NCCL
// are beside.
#include "chexnet/comm/cuda_library.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <cstdio>

#include "check_cuda.hpp"
#include "nccl_communicator.hpp"

namespace chexnet {
namespace {

class PinnedMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override {
    cudaFreeHost(memory);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

class Library final : public CudaLibrary {
 public:
  std::string device_kind() const override { return "cuda"; }
  int device_count() const override {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
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
    return {properties.name, uuid, properties.major, properties.minor,
            properties.totalGlobalMem};
  }
  void select(int device) override { check_cuda(cudaSetDevice(device)); }
  std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Communicator> host,
                                          int device,
                                          double timeout_s) override {
    return make_nccl_communicator(std::move(host), device, timeout_s);
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
  std::size_t peak_bytes() const override {
    int device = 0;
    check_cuda(cudaGetDevice(&device));
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(
        static_cast<c10::DeviceIndex>(device));
    return static_cast<std::size_t>(
        stats
            .allocated_bytes[static_cast<std::size_t>(
                c10::CachingAllocator::StatType::AGGREGATE)]
            .peak);
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
  PinnedMemory pinned_;
};

}  // namespace
}  // namespace chexnet

extern "C" chexnet::CudaLibrary* chexnet_cuda_library() {
  static chexnet::Library library;
  return &library;
}
