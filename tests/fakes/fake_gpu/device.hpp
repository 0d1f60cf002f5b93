// The fake GPU as LibTorch sees it: devices, streams and events of the key
// PrivateUse1, on the fake CUDA runtime; and how work gets onto a stream.
#pragma once

#include <c10/core/Stream.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fakes/fake_cudart/race_detector.hpp"

namespace fake_gpu {

using fake_cuda::RaceDetector;
using fake_cuda::Use;

// A CUDA error as LibTorch's.
void check(cudaError_t error);

// A stream's handle is its id; id 0 is the default stream.
c10::Stream stream_of(c10::DeviceIndex device, cudaStream_t handle);
cudaStream_t handle_of(const c10::Stream& stream);
// Of this thread on its present device.
c10::Stream current_stream();

// Kernel `what` on the current stream; it uses the ranges, which are device or
// pinned addresses. What it throws is thrown by a later launch or wait.
void launch(const std::string& what,
            const std::vector<RaceDetector::Range>& ranges,
            std::function<void()> kernel);
// The same for work that no GPU would have: there is always room for it.
void launch_aside(const std::string& what,
                  const std::vector<RaceDetector::Range>& ranges,
                  std::function<void()> kernel);
// One launch on the current stream.
void launch_graph(cudaGraphExec_t graph);
// The host waits for the current stream, and it is counted.
void wait_for_current_stream();

// Ends the process with kFound: what a correct program never does.
[[noreturn]] void found(const std::string& what);
constexpr int kFound = 98;

struct Counters {
  int64_t launches = 0;
  // item(), copies that block, and whatever else leaves the device with nothing
  // to do when the host goes on.
  int64_t host_waits = 0;
  // For an event after which work is launched already.
  int64_t waits_behind = 0;
};
Counters counters();
// Pieces of work that the current stream has not done yet.
int64_t pending_work();

// Registers the fake GPU with LibTorch; once.
void register_device();

}  // namespace fake_gpu
