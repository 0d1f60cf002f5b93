// Streams and fences of the fake runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "fakes/fake_cudart/capture.hpp"
#include "fakes/fake_cudart/fake_cuda.hpp"

namespace fake_cuda {

// Set once. Never freed: reference counting would order threads that a GPU does
// not order.
class Fence {
 public:
  static Fence* make();
  // Once the stream has done what it has now.
  void put_on(cudaStream_t stream);
  bool is_done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait() const;
  // A lazy stream comes to it.
  void want() const;
  double at_s() const { return at_s_; }  // once it is done

 private:
  void signal();

  std::atomic<uint32_t> done_{0};
  double at_s_ = 0;
  std::atomic<cudaStream_t> stream_{nullptr};
  std::atomic<uint32_t> pieces_{0};  // of the stream, with the signal
};

// The stream that a handle stands for: nullptr and cudaStreamLegacy are the
// default stream of the present device, cudaStreamPerThread is not supported.
cudaStream_t real_stream(cudaStream_t handle);
// Work for the stream, done unless the device is broken by then; kept where the
// thread captures the stream. On the default stream it waits for all blocking
// streams and they for it. Blocks while the stream has no room.
void enqueue(cudaStream_t stream, std::function<void()> work);
void enqueue_made(cudaStream_t stream, Maker make);
// Work that no GPU would have: it takes no room.
void enqueue_aside(cudaStream_t stream, std::function<void()> work);
// Present work of `first` comes before later work of `then`.
void order(cudaStream_t first, cudaStream_t then);
void record(cudaEvent_t event, cudaStream_t stream);
// A host that polls a moment again and again, and launches nothing, waits.
bool waits_by_asking();
// All that was enqueued before has been done.
void wait_for(cudaStream_t stream);
void wait_for_device(int device);

// For the API functions: notes the error for cudaGetLastError and returns it.
cudaError_t noted(cudaError_t error);
// The error that stays, or cudaSuccess.
cudaError_t device_error();
inline cudaError_t checked() { return noted(device_error()); }
int device_count();
int current_device();

}  // namespace fake_cuda

// One thread takes pieces of work from a list. The list has no lock that would
// order the enqueuing thread after this one: its only edge is from there to
// here.
struct CUstream_st {
  CUstream_st(int device, unsigned flags, int priority,
              const fake_cuda::Options& options, unsigned seed);
  // Work without a condition; the thread's end if empty, and the stream's.
  // Returns how many pieces it has been given with this one.
  uint32_t push(std::function<void()> work);
  // A lazy stream does so many of them.
  void want(uint32_t pieces);
  void want_all() { want(pushed_.load(std::memory_order_relaxed)); }
  // As on a real GPU a launch blocks while so many wait for their turn. Orders
  // nothing: the enqueuing thread does not learn which work is done.
  static constexpr int kRoom = 1024;
  void take_room();
  void give_room();
  bool is_idle() const { return pending() == 0; }
  // Pieces of work that are not done.
  uint32_t pending() const;

  const int device;
  const unsigned flags;
  const int priority;

 private:
  struct Node {
    std::function<void()> work;
    std::atomic<Node*> next{nullptr};
  };
  void run(unsigned seed);

  const bool lazy_;
  const int delay_us_;
  std::mutex producers_;  // guards last_
  Node* last_;
  Node* present_;  // the thread's
  std::atomic<uint32_t> pushed_{0}, done_{0}, wanted_{0};
  std::atomic<int> waiting_{0};  // launches
};
