// Devices, streams in use, events and the texts of errors.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <mutex>

#include "fakes/fake_cudart/fake_cuda.hpp"
#include "fakes/fake_cudart/stream.hpp"
#include "fakes/fake_cudart/watch.hpp"

// An event is the fence of its last record.
struct CUevent_st {
  bool has_time = true;
  // Guards the members below; for threads that call the runtime.
  std::mutex mutex;
  fake_cuda::Fence* fence = nullptr;
  int64_t launched_before = 0;  // its last record

  fake_cuda::Fence* present() {
    const std::lock_guard lock(mutex);
    return fence;
  }
  int64_t when() {
    const std::lock_guard lock(mutex);
    return launched_before;
  }
};

namespace fake_cuda {

void record(cudaEvent_t event, cudaStream_t stream) {
  Fence* fence = Fence::make();
  {
    const std::lock_guard lock(event->mutex);
    event->fence = fence;
    event->launched_before = launched();
  }
  fence->put_on(stream);
  saw_record(event, stream);
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return noted(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= device_count())
    return noted(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Fake GPU");
  properties->uuid.bytes[15] = static_cast<char>(device);
  properties->major = 9;
  properties->totalGlobalMem = size_t{1} << 34;
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return checked();
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (is_capturing()) return refused(cudaErrorStreamCaptureUnsupported);
  count_wait_for_all();
  wait_for_device(current_device());
  return checked();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (is_capturing()) return refused(cudaErrorStreamCaptureUnsupported);
  count_wait_for_all();
  wait_for(real_stream(stream));
  return checked();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (is_capturing()) return refused(cudaErrorStreamCaptureUnsupported);
  if (device_error() != cudaSuccess) return checked();
  cudaStream_t real = real_stream(stream);
  if (real->is_idle()) return cudaSuccess;
  if (waits_by_asking()) real->want_all();
  return noted(cudaErrorNotReady);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = real_stream(stream)->priority;
  return checked();
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = real_stream(stream)->flags;
  return checked();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  if (keep_wait(real_stream(stream), event)) return checked();
  // As it is recorded now: a later record is none of this wait's.
  Fence* fence = event->present();
  if (fence == nullptr || forgets_stream_wait()) return checked();
  saw_wait(real_stream(stream), event);
  enqueue(real_stream(stream), [fence] { fence->wait(); });
  return checked();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void* data) {
  enqueue(real_stream(stream), [function, data] { function(data); });
  return checked();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = nullptr;
  if (device_error() != cudaSuccess) return checked();
  *event = new CUevent_st;
  (*event)->has_time = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return checked();
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned flags) {
  cudaStream_t real = real_stream(stream);
  const bool external = flags == cudaEventRecordExternal;
  if (is_captured(real)) {
    keep_record(real, event, external);
    return checked();
  }
  if (external) return noted(cudaErrorIllegalState);
  enqueue(real, [] {});
  record(event, real);
  return checked();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
// "Not ready" is noted as an error, as in older runtimes: the caller has to
// clear it.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (is_capturing()) return refused(cudaErrorStreamCaptureUnsupported);
  if (device_error() != cudaSuccess) return checked();
  const Fence* fence = event->present();
  if (fence == nullptr) return cudaSuccess;
  if (!fence->is_done()) {
    if (waits_by_asking()) fence->want();
    return noted(cudaErrorNotReady);
  }
  saw_host_wait(event);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (is_capturing()) return refused(cudaErrorStreamCaptureUnsupported);
  const Fence* fence = event->present();
  if (fence == nullptr || forgets_host_wait()) return checked();
  count_wait_for_event(event->when());
  fence->wait();
  saw_host_wait(event);
  return checked();
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start,
                                 cudaEvent_t end) {
  const Fence* from = start->present();
  const Fence* to = end->present();
  if (!start->has_time || !end->has_time || from == nullptr || to == nullptr)
    return noted(cudaErrorInvalidResourceHandle);
  if (!from->is_done() || !to->is_done()) return noted(cudaErrorNotReady);
  *ms = static_cast<float>(1e3 * (to->at_s() - from->at_s()));
  return checked();
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    default:
      return "an error of the fake CUDA runtime";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    default:
      return "an error of the fake CUDA runtime";
  }
}

}  // extern "C"
