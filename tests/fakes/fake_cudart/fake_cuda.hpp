// A CUDA runtime without a GPU, with the real headers, for tests. A stream is a
// thread that does what is enqueued, in order, each piece after a random delay;
// an event is a fence. "Device memory" is memory of the host. A kernel is a
// function given to cudaLaunchHostFunc.
//
// Two pieces of work are ordered by what orders them on a GPU and by nothing
// else, so that a missing event gives wrong numbers and, under the thread
// sanitizer, a race.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fake_cuda {

// From the environment unless configure() is called before the first stream:
// FAKE_CUDA_DEVICES, FAKE_CUDA_SEED, FAKE_CUDA_DELAY_US, FAKE_CUDA_LAZY=1.
struct Options {
  int devices = 4;
  unsigned seed = 1;
  int delay_us = 200;  // the longest pause before a piece of work
  // The slowest GPU there can be: a stream does no more than what somebody
  // waits for, or what has to make room.
  bool lazy = false;
};
void configure(const Options& options);

// An error that stays, as after an access out of bounds: every call that
// concerns a device returns it, and enqueued work is not done any more. From
// any thread. cudaSuccess: the device is well again, for the next test.
void break_device(cudaError_t error);

// Pieces of device and pinned memory that are not yet freed.
size_t allocations();

// Where a kernel that hangs stands until the test lets it go on.
class Gate {
 public:
  void open();
  void wait() const;
  // For cudaLaunchHostFunc.
  static void kernel(void* gate) { static_cast<Gate*>(gate)->wait(); }

 private:
  std::atomic<uint32_t> open_{0};
};

}  // namespace fake_cuda
