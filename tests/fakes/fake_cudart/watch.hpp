// What the fake runtime sees of its use: which memory each piece of work
// touches, and whether events order it. Off until detect_races(): a test under
// the thread sanitizer must not be ordered by a detector's lock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fakes/fake_cudart/race_detector.hpp"

namespace fake_cuda {

// `found` gets each race, on the thread that enqueues the second use.
void detect_races(std::function<void(const std::string&)> found);

// The next piece of work on `stream` is `what` and uses the ranges.
void uses(cudaStream_t stream, const std::string& what,
          const std::vector<RaceDetector::Range>& ranges);

// Edges, as the calls of the runtime make them.
void saw_record(const void* event, cudaStream_t stream);
void saw_wait(cudaStream_t stream, const void* event);
void saw_wait(cudaStream_t stream, cudaStream_t other);
void saw_host_wait(cudaEvent_t event);
void saw_host_wait(cudaStream_t stream);

// How often the host waited until CUDA streams came to a point. An event is no
// proof that the device has nothing left to do: when work was launched after
// it, the device goes on while the host waits. Queries without waiting are not
// counted.
struct HostWaits {
  int64_t for_all = 0;   // until the last launched work was done
  int64_t for_some = 0;  // for an event with work launched after it
};
HostWaits host_waits();
// How much work uses() was told of.
int64_t launched();
void count_wait_for_all();
void count_wait_for_event(int64_t launched_before);

// Device memory that the host knows by one address and kernels by another:
// `view` translates, also addresses that are the same for both.
void set_kernel_view(void* (*view)(const void* address));
void* kernel_view(const void* address);
template <class T>
T* for_kernel(T* address) {
  return static_cast<T*>(kernel_view(address));
}

// Planted faults, from the environment, counted from 0:
// FAKE_CUDA_FORGET_STREAM_WAIT=n, a stream forgets the n-th wait for an event;
// FAKE_CUDA_FORGET_HOST_WAIT=n, the host forgets its n-th wait for an event or
// a copy.
bool forgets_stream_wait();
bool forgets_host_wait();

}  // namespace fake_cuda
