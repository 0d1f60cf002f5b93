#include <cuda_runtime_api.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <vector>

#include "fakes/fake_cudart/fake_cuda.hpp"
#include "fakes/fake_cudart/stream.hpp"
#include "support/catch.hpp"

using fake_cuda::break_device;
using fake_cuda::Gate;

namespace {

struct Add {
  int* value;
  int times, plus;
  static void kernel(void* data) {
    auto* self = static_cast<Add*>(data);
    *self->value = *self->value * self->times + self->plus;
  }
};

cudaStream_t made_stream(unsigned flags) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}

}  // namespace

TEST_CASE("a fake stream does its work in order, after the call") {
  cudaStream_t stream = made_stream(cudaStreamNonBlocking);
  Gate gate;
  int value = 1;
  Add doubles{&value, 2, 0}, adds{&value, 1, 5};
  cudaLaunchHostFunc(stream, &Gate::kernel, &gate);
  cudaLaunchHostFunc(stream, &Add::kernel, &doubles);
  cudaLaunchHostFunc(stream, &Add::kernel, &adds);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaSuccess);
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(value == 7);
  cudaStreamDestroy(stream);
}

TEST_CASE("a fake event orders two streams, and a later record is another") {
  cudaStream_t first = made_stream(cudaStreamNonBlocking),
               second = made_stream(cudaStreamNonBlocking);
  cudaEvent_t event = nullptr, done = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaEventCreate(&done) == cudaSuccess);
  for (int round = 0; round < 20; ++round) {
    int value = 1;
    Gate later;
    Add doubles{&value, 2, 0}, adds{&value, 1, 5};
    cudaLaunchHostFunc(first, &Add::kernel, &doubles);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
    cudaLaunchHostFunc(first, &Gate::kernel, &later);
    cudaEventRecord(event, first);
    cudaLaunchHostFunc(second, &Add::kernel, &adds);
    cudaEventRecord(done, second);
    CHECK(cudaEventSynchronize(done) == cudaSuccess);
    CHECK(value == 7);
    CHECK(cudaEventQuery(event) == cudaErrorNotReady);
    later.open();
    CHECK(cudaEventSynchronize(event) == cudaSuccess);
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, done, event) == cudaSuccess);
    CHECK(ms >= 0);
  }
  cudaGetLastError();
  cudaEventDestroy(event);
  cudaEventDestroy(done);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

TEST_CASE(
    "the fake default stream waits for blocking streams and they for it") {
  cudaStream_t blocking = made_stream(cudaStreamDefault);
  int value = 1;
  Add doubles{&value, 2, 0}, adds{&value, 1, 5};
  cudaLaunchHostFunc(blocking, &Add::kernel, &doubles);
  cudaLaunchHostFunc(nullptr, &Add::kernel, &adds);
  cudaLaunchHostFunc(blocking, &Add::kernel, &doubles);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(value == 14);
  cudaStreamDestroy(blocking);
}

TEST_CASE(
    "fake device memory starts as NaN, and copies keep the stream's order") {
  const size_t before = fake_cuda::allocations();
  float *device = nullptr, *pinned = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&device), 8) == cudaSuccess);
  REQUIRE(cudaHostAlloc(reinterpret_cast<void**>(&pinned), 8,
                        cudaHostAllocDefault) == cudaSuccess);
  cudaStream_t stream = made_stream(cudaStreamNonBlocking);
  float host[2] = {0, 0};
  cudaMemcpyAsync(host, device, 8, cudaMemcpyDeviceToHost, stream);
  CHECK(std::isnan(host[1]));

  // Pinned memory is read when the stream gets there, other memory at once.
  Gate gate;
  cudaLaunchHostFunc(stream, &Gate::kernel, &gate);
  pinned[0] = host[0] = 1;
  cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(device + 1, host, 4, cudaMemcpyHostToDevice, stream);
  pinned[0] = host[0] = 2;
  gate.open();
  cudaMemcpyAsync(host, device, 8, cudaMemcpyDeviceToHost, stream);
  CHECK((host[0] == 2 && host[1] == 1));

  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, device + 1) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFree(host) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(fake_cuda::allocations() == before);
  cudaStreamDestroy(stream);
}

TEST_CASE("an error of the fake device stays") {
  cudaStream_t stream = made_stream(cudaStreamNonBlocking);
  break_device(cudaErrorIllegalAddress);
  int value = 1;
  Add doubles{&value, 2, 0};
  CHECK(cudaLaunchHostFunc(stream, &Add::kernel, &doubles) ==
        cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(value == 1);
  break_device(cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaGetLastError();
  cudaStreamDestroy(stream);
}

TEST_CASE("a lazy stream does what somebody waits for, and no more") {
  fake_cuda::configure({.delay_us = 0, .lazy = true});
  cudaStream_t stream = made_stream(cudaStreamNonBlocking);
  fake_cuda::configure({});
  std::atomic<int> done{0};
  const auto launch_one = [&] {
    cudaLaunchHostFunc(
        stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); },
        &done);
  };
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  launch_one();
  cudaEventRecord(event, stream);
  launch_one();
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(done == 1);
  cudaEventRecord(event, stream);
  while (cudaEventQuery(event) != cudaSuccess) continue;
  CHECK(done == 2);
  for (int i = 0; i < 2 * CUstream_st::kRoom; ++i) launch_one();
  CHECK(done < 2 * CUstream_st::kRoom);  // room was made
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(done == 2 + 2 * CUstream_st::kRoom);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  cudaGetLastError();
}

namespace {

// A graph of what `work` gives `stream`; null where it is refused.
template <class Work>
cudaGraphExec_t captured(cudaStream_t stream, const Work& work) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) ==
          cudaSuccess);
  work();
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  cudaGraphDestroy(graph);
  return exec;
}

}  // namespace

TEST_CASE("a fake graph does its work at each launch, over two streams") {
  cudaStream_t first = made_stream(cudaStreamNonBlocking),
               second = made_stream(cudaStreamNonBlocking);
  cudaEvent_t fork = nullptr, join = nullptr, seen = nullptr;
  for (cudaEvent_t* event : {&fork, &join, &seen})
    REQUIRE(cudaEventCreate(event) == cudaSuccess);
  int value = 1;
  Add doubles{&value, 2, 0}, adds{&value, 1, 5};
  const cudaGraphExec_t graph = captured(first, [&] {
    cudaLaunchHostFunc(first, &Add::kernel, &doubles);
    cudaEventRecord(fork, first);
    cudaStreamWaitEvent(second, fork, 0);
    cudaLaunchHostFunc(second, &Add::kernel, &adds);
    cudaEventRecord(join, second);
    cudaStreamWaitEvent(first, join, 0);
    cudaEventRecordWithFlags(seen, first, cudaEventRecordExternal);
    cudaLaunchHostFunc(first, &Add::kernel, &doubles);
  });
  REQUIRE(graph != nullptr);
  cudaStreamSynchronize(first);
  cudaStreamSynchronize(second);
  CHECK(value == 1);
  int expected = 1;
  for (int round = 0; round < 10; ++round) {
    cudaGraphLaunch(graph, first);
    CHECK(cudaEventSynchronize(seen) == cudaSuccess);
    expected = (2 * expected + 5) * 2;
    cudaStreamSynchronize(first);
    CHECK(value == expected);
  }
  cudaGraphExecDestroy(graph);
  for (cudaEvent_t event : {fork, join, seen}) cudaEventDestroy(event);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

TEST_CASE("a fake capture refuses what CUDA refuses") {
  cudaStream_t first = made_stream(cudaStreamNonBlocking),
               second = made_stream(cudaStreamNonBlocking);
  cudaEvent_t before = nullptr, fork = nullptr;
  REQUIRE(cudaEventCreate(&before) == cudaSuccess);
  REQUIRE(cudaEventCreate(&fork) == cudaSuccess);
  cudaEventRecord(before, second);
  float pageable = 0;
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, sizeof pageable) == cudaSuccess);
  const std::vector<std::function<void()>> refused = {
      [&] { cudaStreamSynchronize(first); }, [&] { cudaStreamQuery(second); },
      [&] { cudaDeviceSynchronize(); }, [&] { cudaEventQuery(before); },
      [&] { cudaEventSynchronize(before); },
      [&] { cudaStreamWaitEvent(first, before, 0); },
      [&] {
        cudaMemcpyAsync(device, &pageable, sizeof pageable,
                        cudaMemcpyHostToDevice, first);
      },
      // A branch that does not come back.
      [&] {
        cudaEventRecord(fork, first);
        cudaStreamWaitEvent(second, fork, 0);
      }};
  for (const auto& mistake : refused)
    CHECK(captured(first, mistake) == nullptr);
  CHECK(cudaStreamSynchronize(first) == cudaSuccess);
  cudaFree(device);
  cudaEventDestroy(before);
  cudaEventDestroy(fork);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}
