// All that the program asks of CUDA and NCCL, behind libchexnet_cuda.so, which
// is opened only where a GPU is present.
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <string>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

struct GpuInfo {
  std::string name, uuid;
  int major = 0, minor = 0;  // compute capability
  std::size_t memory_bytes = 0;
};

class CudaLibrary {
 public:
  virtual ~CudaLibrary() = default;
  // The kind of device in LibTorch's words ("cuda"): what at::Device takes.
  virtual std::string device_kind() const = 0;
  virtual int device_count() const = 0;
  virtual GpuInfo info(int device) const = 0;
  virtual void select(int device) = 0;  // for this thread and what it starts
  // Gradients over NCCL on the current compute stream; control plane through
  // `host`, which it owns.
  virtual std::unique_ptr<Communicator> make_nccl(
      std::unique_ptr<Communicator> host, int device, double timeout_s) = 0;
  virtual std::pmr::memory_resource* pinned_memory() = 0;
  // Shows the profiler's spans to profilers as NVTX ranges.
  virtual void mark_ranges(Profiler& profiler) = 0;
  virtual void synchronize() = 0;
  virtual std::size_t peak_bytes() const = 0;
  virtual std::string versions() const = 0;  // driver, runtime, NCCL

  // GPUs that the driver shows to this process; asks the driver alone, so it
  // costs nothing. 0 without a driver.
  static int visible_gpus();
  // The library's file beside the program.
  static const char* file_name();
  // The library where this machine has a usable GPU, else null. One per
  // process, never unloaded.
  static CudaLibrary* open_if_present();
};

}  // namespace chexnet
