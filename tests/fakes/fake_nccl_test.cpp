#include "fakes/fake_nccl/fake_nccl.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "chexnet/comm/half.hpp"
#include "fakes/fake_cudart/fake_cuda.hpp"
#include "support/catch.hpp"

namespace {

constexpr size_t kElements = 100'000;  // several pieces of fp32 and fp64

// One rank: an all-reduce of its rank + 1 everywhere. Catch is not asked here.
template <class T>
std::vector<T> reduced(ncclUniqueId id, int ranks, int rank,
                       ncclDataType_t type, ncclRedOp_t op, T mine) {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  cudaSetDevice(rank);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  ncclCommInitRank(&comm, ranks, id, rank);
  std::vector<T> values(kElements, mine);
  T* device = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&device), kElements * sizeof(T));
  cudaMemcpyAsync(device, values.data(), kElements * sizeof(T),
                  cudaMemcpyHostToDevice, stream);
  ncclAllReduce(device, device, kElements, type, op, comm, stream);
  cudaMemcpyAsync(values.data(), device, kElements * sizeof(T),
                  cudaMemcpyDeviceToHost, stream);
  ncclCommDestroy(comm);
  cudaFree(device);
  cudaStreamDestroy(stream);
  return values;
}

template <class T>
void check_threads(ncclDataType_t type, ncclRedOp_t op,
                   const std::vector<T>& mine, T expected) {
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  const int ranks = static_cast<int>(mine.size());
  std::vector<std::vector<T>> found(mine.size());
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        const auto index = static_cast<size_t>(r);
        found[index] = reduced(id, ranks, r, type, op, mine[index]);
      });
  }
  for (const auto& values : found)
    CHECK(values == std::vector<T>(kElements, expected));
}

}  // namespace

TEST_CASE("the fake all-reduce among threads, in each type") {
  fake_cuda::configure({4, 7, 100});
  check_threads<float>(ncclFloat32, ncclAvg, {1, 2, 6}, 3);
  check_threads<double>(ncclFloat64, ncclSum, {1, 2, 6}, 9);
  using chexnet::to_bf16, chexnet::to_fp16;
  check_threads<uint16_t>(ncclFloat16, ncclSum, {to_fp16(1), to_fp16(0.5f)},
                          to_fp16(1.5f));
  check_threads<uint16_t>(ncclBfloat16, ncclSum, {to_bf16(1), to_bf16(0.5f)},
                          to_bf16(1.5f));
  CHECK(fake_nccl::communicators() == 0);
}

// The other process of the test below.
TEST_CASE("rank 1 in another process", "[.]") {
  const char* name = std::getenv("FAKE_NCCL_TEST_ID");
  if (name == nullptr) return;  // an exclusion alone also runs hidden tests
  ncclUniqueId id{};
  std::strncpy(id.internal, name, sizeof id.internal - 1);
  CHECK(reduced<float>(id, 2, 1, ncclFloat32, ncclAvg, 3) ==
        std::vector<float>(kElements, 2));
}

TEST_CASE("the fake all-reduce between two processes") {
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  setenv("FAKE_NCCL_TEST_ID", id.internal, 1);
  std::string program = "/proc/self/exe", test = "rank 1 in another process";
  char* arguments[] = {program.data(), test.data(), nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments,
                      environ) == 0);
  unsetenv("FAKE_NCCL_TEST_ID");
  CHECK(reduced<float>(id, 2, 0, ncclFloat32, ncclAvg, 1) ==
        std::vector<float>(kElements, 2));
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("the fake all-gather puts the ranks one behind the other") {
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::vector<float>> found(2, std::vector<float>(4));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < 2; ++r)
      threads.emplace_back([&, r] {
        ncclComm_t comm = nullptr;
        cudaStream_t stream = nullptr;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        ncclCommInitRank(&comm, 2, id, r);
        const float base = 10.0f * static_cast<float>(r);
        const std::vector<float> mine = {base, base + 1};
        ncclAllGather(mine.data(), found[static_cast<size_t>(r)].data(), 2,
                      ncclFloat32, comm, stream);
        cudaStreamSynchronize(stream);
        ncclCommDestroy(comm);
        cudaStreamDestroy(stream);
      });
  }
  for (const auto& all : found) CHECK(all == std::vector<float>{0, 1, 10, 11});
}

TEST_CASE("a fake collective that never ends does so until it is aborted") {
  fake_nccl::set_faults({.remote_error_at = 0});
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclComm_t comm = nullptr;
  REQUIRE(ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  float value = 1;
  CHECK(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclAvg, comm, stream) ==
        ncclSuccess);
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
  CHECK(state == ncclRemoteError);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  ncclCommAbort(comm);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  fake_nccl::set_faults({});
  cudaGetLastError();
  cudaStreamDestroy(stream);
}

// As NCCL's: who destroys a communicator first waits for the graph's end.
TEST_CASE("a fake communicator ends after the graphs that hold its work") {
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  cudaSetDevice(0);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  REQUIRE(ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess);
  float* value = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&value), sizeof *value);
  *value = 3;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, comm, stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  CHECK(*value == 3);
  std::atomic<bool> is_gone{false};
  std::jthread leaves([&] {
    ncclCommDestroy(comm);
    is_gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(!is_gone);
  cudaGraphExecDestroy(exec);
  leaves.join();
  CHECK(is_gone);
  cudaFree(value);
  cudaStreamDestroy(stream);
}
