// CUDA streams and events that destroy themselves. Neither waits.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "check_cuda.hpp"

namespace chexnet {

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using GpuStream =
    std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using GpuEvent =
    std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

// Of the selected GPU. Not ordered with the default stream; of the highest
// priority, so that short kernels of communication do not wait for long ones
// that compute.
inline GpuStream make_communication_stream() {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  check_cuda(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return GpuStream(stream);
}

inline GpuEvent make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, flags));
  return GpuEvent(event);
}

// Whether the device has come to the event. Some runtimes note "not yet" as an
// error, which the next check must not find.
inline bool has_happened(const GpuEvent& event) {
  const cudaError_t state = cudaEventQuery(event.get());
  if (state == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check_cuda(state);
  return true;
}

}  // namespace chexnet
