// Where a rank computes: its GPU or its part of the host's cores.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/comm/nccl_log.hpp"
#include "chexnet/comm/placement.hpp"
#include "chexnet/config/config.hpp"

namespace chexnet {

struct Device {
  at::Device where = at::kCPU;
  CudaLibrary* cuda = nullptr;  // null on CPU
  GpuInfo gpu;                  // of this rank
  int cores = 1;                // this rank's part of the cores it may use
  int threads = 1;              // compute threads of this rank
  std::string description;      // one line for the settings table
  std::vector<PlacementRow> placements;  // of all ranks
  // Of all ranks, once gradient_communicator() was called.
  NcclReport transports;
  // Of a GPU: whether our own kernels compute there, beside LibTorch's.
  bool own_kernels = false;
  std::pmr::memory_resource* batch_memory() const {
    return cuda ? cuda->pinned_memory() : std::pmr::get_default_resource();
  }
};

// FLOP/s of a GPU at its highest clock, of tensor cores where `precision` has
// them; 0: not known. Data sheets may count a lower clock (H100: 989 of 1,070
// TFLOP/s in 16 bits).
double peak_flops(const GpuInfo& gpu, Precision precision);

// GPU = local rank mod visible devices; two ranks on one GPU, or
// launch.device=cuda without one, is a DeviceError on every rank. Then each
// rank takes its placement (launch.bind); what stays wrong is logged. Sets the
// thread count of LibTorch. Where our kernels cannot be used on a rank, a
// warning says why and none uses them. Collective; before threads start that
// should follow.
Device choose_device(const LaunchConfig& config, Communicator& comm);

}  // namespace chexnet
