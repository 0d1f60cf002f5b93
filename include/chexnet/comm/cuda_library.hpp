// All that the program asks of CUDA and NCCL, behind libchexnet_cuda.so, which
// is opened only where a GPU is present.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/launch/machine/gpu_access.hpp"

namespace chexnet {

struct GpuInfo {
  std::string name, uuid;
  std::string slot{};        // on the PCI bus: MIG devices of a GPU have one
  int major = 0, minor = 0;  // compute capability
  size_t memory_bytes = 0;
  int multiprocessors = 0;
  double clock_hz = 0;  // of them, the highest
};

// Work of the current CUDA stream, recorded to be launched again as one piece
// (a CUDA graph). Its recordings share memory, so they execute one after the
// other. What they use lives as long as they do. One thread.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Calls work(). What that launches on the current CUDA stream, and on others
  // between an event of the current stream and one that it waits for, is
  // recorded and not executed; work() must wait for nothing. Returns the
  // recording's number. Where it throws, nothing is recorded.
  virtual size_t record(const std::function<void()>& work) = 0;
  // Launches a recording on the current stream.
  virtual void replay(size_t recording) = 0;
};

class CudaLibrary;

// The GPUs of this host for this process. Both empty: there are none.
struct GpuAccess {
  CudaLibrary* library = nullptr;  // usable; never unloaded
  GpuProblem problem;  // why GPUs that are here, or should be, cannot be used
};

class CudaLibrary {
 public:
  virtual ~CudaLibrary() = default;
  // The kind of device in LibTorch's words ("cuda"): what at::Device takes.
  virtual std::string device_kind() const = 0;
  // Why the CUDA runtime or LibTorch cannot compute here; call it before
  // anything else.
  virtual GpuProblem problem() const = 0;
  virtual int device_count() const = 0;  // at least 1 without a problem
  virtual GpuInfo info(int device) const = 0;
  virtual void select(int device) = 0;  // for this thread and what it starts
  // Why our own kernels cannot compute on the selected GPU: "" where they can.
  // Compiles some of them (a third of a second).
  virtual std::string kernels_problem() = 0;
  // Gradients over NCCL on the current compute stream; control plane through
  // `host`, which it owns.
  virtual std::unique_ptr<Communicator> make_nccl(
      std::unique_ptr<Communicator> host, int device, double timeout_s) = 0;
  virtual std::unique_ptr<Recorder> make_recorder() = 0;  // of the selected GPU
  virtual std::pmr::memory_resource* pinned_memory() = 0;
  // Shows the profiler's spans to profilers as NVTX ranges.
  virtual void mark_ranges(Profiler& profiler) = 0;
  virtual void synchronize() = 0;
  // Of the selected GPU: bytes that this process may still allocate, its own
  // unused ones among them.
  virtual size_t free_bytes() const = 0;
  // The most that tensors took at once since the start or restart_peak().
  virtual size_t peak_bytes() const = 0;
  // The most that the allocator held at once, gaps between tensors included:
  // what must be free for the same work again.
  virtual size_t peak_held_bytes() const = 0;
  // Gives memory that no tensor uses back to the driver, too.
  virtual void restart_peak() = 0;
  virtual std::string versions() const = 0;  // driver, runtime, NCCL

  // The library's file beside the program.
  static const char* file_name();
  // What this program was built for.
  static const GpuBuild& build();
  // Why GPUs cannot be used, by bus, batch job and driver, before anything
  // large is loaded.
  static GpuProblem problem_of_host();
  // GPUs that the driver shows to this process; needs the driver alone, so it
  // costs nothing. 0 without a driver.
  static int visible_gpus();
  // On a host without GPUs: what would keep this program from using them on
  // another host. Opens the library (0.4 s).
  static GpuProblem problem_elsewhere();
  // Checks once per process, and opens the library where nothing is against it.
  static const GpuAccess& access();
};

}  // namespace chexnet
