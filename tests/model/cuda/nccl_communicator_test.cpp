// Catch's assertions are not thread-safe, so ranks return what they saw.
#include "model/cuda/nccl_communicator.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/core/clock.hpp"
#include "fakes/fake_cudart/stream.hpp"
#include "support/catch.hpp"
#include "support/gpu_faults.hpp"
#include "support/gpu_rank.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;
using fake_cuda::Gate;

namespace {

constexpr size_t kCount = 3000;
// A step of two buckets whose gradients are `value`.
void step(GpuRank& gpu, float value, GpuRank::Values& result) {
  BucketedReducer reducer(gpu.comm(), {{0, 2000, false}, {2000, kCount, false}},
                          gpu.flat(), ElementType::kF32);
  reducer.begin();
  gpu.write(0, 2000, value);
  reducer.written_to(2000);
  gpu.write(2000, kCount, value);
  reducer.written_to(kCount);
  reducer.finish();
  result = gpu.read();
  reducer.wait_until_finished();
}

// "": the spans of the GPU's streams stand in the order of a step of two
// buckets, on the host's clock, which showed `begin_s` before.
std::string wrong_spans(const std::vector<TimelineEvent>& events, size_t steps,
                        double begin_s) {
  std::string wrong;
  const auto say_unless = [&](bool right, const char* what) {
    if (!right) wrong += std::string(what) + "; ";
  };
  std::vector<TimelineEvent> gpu;
  for (const auto& e : events)
    if (e.track == Track::kGpu) gpu.push_back(e);
  say_unless(gpu.size() == 4 * steps, "four spans a step");
  constexpr double kRounding_s = 1e-6;  // times are floats of milliseconds
  // Two clocks are compared as exactly as a busy host looks at them.
  constexpr double kLook_s = 60;
  const double end_s = now_s() + kLook_s;
  for (size_t i = 0; i + 4 <= gpu.size(); i += 4) {
    const auto &computing = gpu[i], &waiting = gpu[i + 1], &first = gpu[i + 2],
               &second = gpu[i + 3];
    say_unless(computing.name == std::string("forward and backward") &&
                   waiting.name == std::string("waiting for gradients") &&
                   second.name == std::string("all-reduce of bucket"),
               "names");
    say_unless(computing.lane == kComputeStream &&
                   waiting.lane == kComputeStream &&
                   first.lane == kCommunicationStream &&
                   second.lane == kCommunicationStream,
               "streams");
    say_unless(first.number == 0 && second.number == 1, "buckets");
    say_unless(begin_s - kLook_s <= computing.begin_s &&
                   computing.begin_s <= computing.end_s &&
                   waiting.begin_s == computing.end_s &&
                   waiting.begin_s <= waiting.end_s && waiting.end_s <= end_s,
               "computing, then waiting");
    say_unless(computing.begin_s <= first.begin_s + kRounding_s &&
                   first.begin_s <= first.end_s &&
                   first.end_s <= second.begin_s + kRounding_s &&
                   second.begin_s <= second.end_s &&
                   second.end_s <= waiting.end_s + kRounding_s,
               "one bucket after the other, waited for");
  }
  return wrong;
}

// Five times on three ranks: kernels write, all gather, kernels read; returns
// values that were not everybody's.
std::vector<std::string> wrong_gathers() {
  return rank_results(3, [&](Communicator& world) {
    std::string wrong;
    GpuRank gpu(world, kCount);
    for (int round = 1; round <= 5; ++round) {
      const auto all = gpu.gather({10.0 * round, 1.0 + world.rank()});
      gpu.comm().finish();
      gpu.comm().wait_until_finished();
      cudaStreamSynchronize(gpu.compute());
      const double tens = 10.0 * round;
      if (*all != std::vector<double>{tens, 1, tens, 2, tens, 3})
        wrong += std::to_string(round) + " ";
    }
    return wrong;
  });
}

// Five steps on three ranks; returns values that were not the mean.
std::vector<std::string> wrong_means(GradientCompression compression) {
  return rank_results(3, [&](Communicator& world) {
    std::string wrong;
    GpuRank gpu(world, kCount);
    gpu.comm().set_compression(compression);
    for (int round = 1; round <= 5; ++round) {
      GpuRank::Values result;
      step(gpu, static_cast<float>(round * (world.rank() + 1) * 3), result);
      cudaStreamSynchronize(gpu.compute());
      if (*result != std::vector<float>(kCount, static_cast<float>(6 * round)))
        wrong += std::to_string(round) + " ";
    }
    return wrong;
  });
}

}  // namespace

TEST_CASE("gradients on GPUs: the mean arrives behind the last kernel") {
  const auto compression =
      GENERATE(GradientCompression::kNone, GradientCompression::kFp16,
               GradientCompression::kBf16);
  CHECK(wrong_means(compression) == std::vector<std::string>(3, ""));
  CHECK(all_communicators_are_gone());
}

TEST_CASE("gradients in fp64 and a GPU alone") {
  const auto results = rank_results(2, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    double* values = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&values), sizeof *values);
    launch(gpu.compute(), [=, rank = world.rank()] { *values = rank + 0.25; });
    gpu.comm().start({values, 1, ElementType::kF64});
    gpu.comm().finish();
    const bool waited = gpu.comm().wait_until_finished().has_value();
    const bool again = gpu.comm().wait_until_finished().has_value();
    const double mean = *values;
    cudaFree(values);
    return waited && !again ? mean : -1;
  });
  CHECK(results == std::vector<double>{0.75, 0.75});

  const auto alone = rank_results(1, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    GpuRank::Values result;
    step(gpu, 2, result);
    const auto seconds = gpu.profiler().seconds();
    const auto waited = static_cast<size_t>(Phase::kAllReduceWait);
    cudaStreamSynchronize(gpu.compute());
    return *result == std::vector<float>(kCount, 2) && seconds[waited] == 0 &&
           gpu.comm().description() == "threads";
  });
  CHECK(alone[0]);
  CHECK(fake_nccl::communicators() == 0);
}

TEST_CASE("a timeline shows when the GPU's streams were busy") {
  const auto results = rank_results(2, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    GpuRank::Values result;
    gpu.comm().begin_step();
    step(gpu, 1, result);  // nobody records
    const auto recording = std::make_shared<Recording>(100);
    gpu.profiler().record(recording);
    const double begin_s = now_s();
    for (int s = 0; s < 3; ++s) {
      gpu.comm().begin_step();
      step(gpu, 1, result);
    }
    return wrong_spans(recording->events(), 3, begin_s);
  });
  CHECK(results == std::vector<std::string>(2, ""));

  const auto alone = rank_results(1, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    const auto recording = std::make_shared<Recording>(100);
    gpu.profiler().record(recording);
    GpuRank::Values result;
    gpu.comm().begin_step();
    step(gpu, 1, result);
    std::string names;
    for (const auto& e : recording->events())
      if (e.track == Track::kGpu) names += e.name;
    return names;
  });
  CHECK(alone[0] == "forward and backward");
}

TEST_CASE("a wait may come a step later, and says what each step waited") {
  const auto results = rank_results(2, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    int waits = 0;
    for (int s = 0; s < 4; ++s) {
      gpu.write(0, kCount, 1);
      gpu.comm().start({gpu.flat(), kCount, ElementType::kF32});
      gpu.comm().finish();
      if (s > 0) waits += gpu.comm().wait_until_finished() ? 1 : 0;
    }
    while (gpu.comm().wait_until_finished()) ++waits;
    return waits;
  });
  CHECK(results == std::vector<int>{4, 4});
}

TEST_CASE("a recorded step is another mean at each replay, waited for apart") {
  const auto results = rank_results(3, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    float value = 0;
    BucketedReducer reducer(gpu.comm(),
                            {{0, 2000, false}, {2000, kCount, false}},
                            gpu.flat(), ElementType::kF32);
    cudaStreamBeginCapture(gpu.compute(), cudaStreamCaptureModeThreadLocal);
    gpu.comm().begin_recording();
    gpu.comm().begin_step();
    reducer.begin();
    launch(gpu.compute(), [&] { std::fill_n(gpu.flat(), kCount, value); });
    reducer.written_to(2000);
    reducer.finish();
    const auto waits = gpu.comm().end_recording();
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(gpu.compute(), &graph);
    cudaGraphExec_t replay = nullptr;
    cudaGraphInstantiate(&replay, graph, 0);
    cudaGraphDestroy(graph);
    std::string wrong = gpu.comm().wait_until_finished() ? "a wait " : "";
    const auto timeline = std::make_shared<Recording>(100);
    gpu.profiler().record(timeline);
    const double begin_s = now_s();
    for (int round = 1; round <= 3; ++round) {
      value = static_cast<float>(round * (world.rank() + 1) * 3);
      cudaGraphLaunch(replay, gpu.compute());
      gpu.comm().replayed(waits);
      if (!gpu.comm().wait_until_finished()) wrong += "no wait ";
      if (gpu.comm().wait_until_finished()) wrong += "two waits ";
      const std::vector<float> result(gpu.flat(), gpu.flat() + kCount);
      if (result != std::vector<float>(kCount, static_cast<float>(6 * round)))
        wrong += std::to_string(round) + " ";
    }
    cudaGraphExecDestroy(replay);
    return wrong + wrong_spans(timeline->events(), 3, begin_s);
  });
  CHECK(results == std::vector<std::string>(3, ""));
  CHECK(all_communicators_are_gone());
}

TEST_CASE("a recording that fails leaves nothing for the next step") {
  const auto results = rank_results(2, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    BucketedReducer reducer(gpu.comm(), {{0, kCount, false}}, gpu.flat(),
                            ElementType::kF32);
    cudaStreamBeginCapture(gpu.compute(), cudaStreamCaptureModeThreadLocal);
    gpu.comm().begin_recording();
    reducer.begin();
    reducer.written_to(kCount);
    // The host may not wait meanwhile.
    const bool refused = cudaStreamSynchronize(gpu.compute()) != cudaSuccess;
    reducer.abandon();
    gpu.comm().end_recording();
    cudaGraph_t graph = nullptr;
    const bool failed =
        cudaStreamEndCapture(gpu.compute(), &graph) != cudaSuccess;
    cudaGetLastError();
    GpuRank::Values result;
    step(gpu, 2, result);
    cudaStreamSynchronize(gpu.compute());
    return refused && failed && graph == nullptr &&
           *result == std::vector<float>(kCount, 2) &&
           !gpu.comm().wait_until_finished();
  });
  CHECK(results == std::vector<bool>{true, true});
  CHECK(all_communicators_are_gone());
}

TEST_CASE("a kernel that never ends is a hung GPU, and its rank says so") {
  Gate gate;
  std::vector<const PhaseSlot*> slots(2);
  std::string said;
  const auto results = rank_results(2, [&](Communicator& world) {
    GpuRank gpu(world, kCount, kShort_s);
    slots[static_cast<size_t>(world.rank())] = &gpu.slot();
    world.barrier();
    if (world.rank() == 1)
      cudaLaunchHostFunc(gpu.compute(), &Gate::kernel, &gate);
    std::jthread watch;
    if (world.rank() == 0)
      watch = std::jthread([&] {
        eventually([&] { return slots[0]->sequence == 1; });
        wait_for(*slots[1], Phase::kBackward);
        said = verdict(slots);
      });
    GpuRank::Values result;
    std::string end = outcome([&] { step(gpu, 1, result); });
    if (watch.joinable()) watch.join();
    world.barrier();  // the slots are looked at until here
    gate.open();
    cudaStreamSynchronize(gpu.compute());
    return end;
  });
  CHECK(said == "GPU hangs 1");
  CHECK(contains(results[0],
                 "7 [nccl] rank 0: its GPU has computed the step, "
                 "but the all-reduce of gradients (collective 1)"));
  CHECK(contains(results[1],
                 "7 [cuda] rank 1: its GPU did not finish computing a step in "
                 "1 s. Hint: nvidia-smi"));
  CHECK(all_communicators_are_gone());
}

TEST_CASE("moments of all ranks arrive in the midst of computing") {
  CHECK(wrong_gathers() == std::vector<std::string>(3, ""));
  CHECK(all_communicators_are_gone());
}

TEST_CASE("a gather that never ends is the network, though kernels wait too") {
  // 0 is the start's own.
  const WithFaults faults({.rank = 1, .never_completes_at = 1});
  const auto results = rank_results(2, [&](Communicator& world) {
    GpuRank gpu(world, kCount, kShort_s);
    std::string end = outcome([&] {
      gpu.gather({1, 2});
      GpuRank::Values result;
      step(gpu, 1, result);
    });
    world.barrier();
    cudaStreamSynchronize(gpu.compute());
    return end;
  });
  for (int r = 0; r < 2; ++r)
    CHECK(contains(results[static_cast<size_t>(r)],
                   "7 [nccl] rank " + std::to_string(r) +
                       ": its GPU has computed what comes before BatchNorm, "
                       "but the all-gather of moments (collective 1)"));
  CHECK(all_communicators_are_gone());
}

TEST_CASE("an all-reduce that never ends is the network, on every rank") {
  // 0 is the start's own.
  const WithFaults faults({.rank = 1, .never_completes_at = 2});
  std::vector<const PhaseSlot*> slots(2);
  std::string said;
  const auto results = rank_results(2, [&](Communicator& world) {
    GpuRank gpu(world, kCount, kShort_s);
    slots[static_cast<size_t>(world.rank())] = &gpu.slot();
    world.barrier();
    std::jthread watch;
    if (world.rank() == 0)
      watch = std::jthread([&] {
        eventually(
            [&] { return slots[0]->sequence == 1 && slots[1]->sequence == 1; });
        said = verdict(slots);
      });
    GpuRank::Values result;
    std::string end = outcome([&] { step(gpu, 1, result); });
    if (watch.joinable()) watch.join();
    world.barrier();
    cudaStreamSynchronize(gpu.compute());
    return end;
  });
  CHECK(said == "network 0 1");
  for (int r = 0; r < 2; ++r)
    CHECK(contains(results[static_cast<size_t>(r)],
                   "7 [nccl] rank " + std::to_string(r) +
                       ": its GPU has computed the step"));
  CHECK(all_communicators_are_gone());
}

TEST_CASE("a peer that comes late is named, and the step ends well") {
  std::vector<const PhaseSlot*> slots(2);
  std::string said;
  const auto results = rank_results(2, [&](Communicator& world) {
    GpuRank gpu(world, kCount);
    slots[static_cast<size_t>(world.rank())] = &gpu.slot();
    world.barrier();
    if (world.rank() == 1) {
      eventually([&] { return slots[0]->sequence == 1; });
      said = verdict(slots);  // itself in other work
    }
    GpuRank::Values result;
    const std::string end =
        outcome([&] { step(gpu, world.rank() == 0 ? 1.0f : 3.0f, result); });
    world.barrier();
    cudaStreamSynchronize(gpu.compute());
    if (cudaGetLastError() != cudaSuccess) return std::string("an old error");
    return *result == std::vector<float>(kCount, 2) ? end : "wrong";
  });
  CHECK(said == "stuck 1");
  CHECK(results == std::vector<std::string>{"fine", "fine"});
  CHECK(all_communicators_are_gone());
}

TEST_CASE("what the host calls waiting is what the GPU says it was") {
  // Rank 1 is late; rank 0's host also comes late to its wait, so that it finds
  // all done: by the host's clock it would have waited for nothing.
  std::atomic<bool> first_has_computed{false};
  // Begin and end of the time in which only rank 1 computed, and the end of
  // all.
  double computed_s = 0, opened_s = 0, done_s = 0;
  const auto results = rank_results(2, [&](Communicator& world) {
    GpuRank gpu(world, kCount);
    Gate late;
    if (world.rank() == 1)
      cudaLaunchHostFunc(gpu.compute(), &Gate::kernel, &late);
    gpu.write(0, kCount, 1);
    gpu.comm().start({gpu.flat(), kCount, ElementType::kF32});
    gpu.comm().finish();
    if (world.rank() == 0) {
      // All but the wait for the other.
      eventually([&] { return gpu.compute()->pending() == 1; });
      first_has_computed = true;
    }
    if (world.rank() == 1) {
      eventually([&] { return first_has_computed.load(); });
      computed_s = now_s();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      opened_s = now_s();
      late.open();
    }
    cudaStreamSynchronize(gpu.compute());
    if (world.rank() == 1) done_s = now_s();
    const double waited_s = gpu.comm().wait_until_finished().value_or(-1);
    const auto seconds = gpu.profiler().seconds();
    const double booked = seconds[static_cast<size_t>(Phase::kAllReduceWait)];
    return std::vector<double>{waited_s, booked};
  });
  constexpr double kRounding_s = 1e-4;  // of an event's time in ms, a float
  CHECK(results[0][0] >= opened_s - computed_s - kRounding_s);
  CHECK(results[1][0] <= done_s - opened_s + kRounding_s);
  for (const auto& of_rank : results) CHECK(of_rank[1] >= of_rank[0] - 1e-6);
}

TEST_CASE("a start that never ends is given up after the deadline") {
  const WithFaults faults({.init_never_ends = true});
  const auto results = rank_results(2, [](Communicator& world) {
    return outcome([&] { const GpuRank gpu(world, kCount, kShort_s); });
  });
  for (int r = 0; r < 2; ++r)
    CHECK(contains(results[static_cast<size_t>(r)],
                   "7 [nccl] rank " + std::to_string(r) +
                       ": NCCL's start did not finish in 1 s. Hint: can the "
                       "hosts reach"));
}

TEST_CASE("the start opens what a step of any size needs, or is given up") {
  const WithFaults faults({.rank = 1, .connecting_hangs = true});
  const auto results = rank_results(2, [](Communicator& world) {
    return outcome([&] {
      GpuRank gpu(world, kCount, kShort_s);
      GpuRank::Values result;
      step(gpu, 1, result);
    });
  });
  for (int r = 0; r < 2; ++r)
    CHECK(contains(results[static_cast<size_t>(r)],
                   "7 [nccl] rank " + std::to_string(r) +
                       ": NCCL's start did not finish in 1 s"));
}

TEST_CASE("a call of NCCL that does not return is the network") {
  setenv("NCCL_RUNTIME_CONNECT", "1", 1);
  const WithFaults faults({.connecting_hangs = true});
  std::vector<const PhaseSlot*> slots(2);
  std::string said;
  const auto results = rank_results(2, [&](Communicator& world) {
    GpuRank gpu(world, kCount);
    slots[static_cast<size_t>(world.rank())] = &gpu.slot();
    world.barrier();
    std::jthread watch;
    if (world.rank() == 0)
      watch = std::jthread([&] {
        wait_for(*slots[0], Phase::kAllReduceWait);
        wait_for(*slots[1], Phase::kAllReduceWait);
        said = verdict(slots);
        fake_nccl::set_faults({});
      });
    GpuRank::Values result;
    std::string end = outcome([&] { step(gpu, 1, result); });
    if (watch.joinable()) watch.join();
    world.barrier();
    cudaStreamSynchronize(gpu.compute());
    return end;
  });
  unsetenv("NCCL_RUNTIME_CONNECT");
  CHECK(said == "network 0 1");
  CHECK(results == std::vector<std::string>{"fine", "fine"});
  CHECK(all_communicators_are_gone());
}

TEST_CASE("a start that takes its time is waited for") {
  const WithFaults faults({.rank = 1, .slow_start_s = 0.3});
  const auto results = rank_results(2, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    GpuRank::Values result;
    step(gpu, static_cast<float>(1 + 2 * world.rank()), result);
    cudaStreamSynchronize(gpu.compute());
    return *result == std::vector<float>(kCount, 2);
  });
  CHECK(results == std::vector<bool>{true, true});
  CHECK(all_communicators_are_gone());
}

TEST_CASE("an error of NCCL ends the wait for it") {
  const WithFaults faults({.remote_error_at = 1});
  const auto results = rank_results(2, [](Communicator& world) {
    return outcome([&] {
      GpuRank gpu(world, kCount);
      GpuRank::Values result;
      step(gpu, 1, result);
    });
  });
  for (const auto& result : results)
    CHECK(contains(result, "remote process exited or there was a network"));
  for (const auto& result : results) CHECK(result.substr(0, 2) == "5 ");
  CHECK(all_communicators_are_gone());
}

TEST_CASE("an error of the GPU ends the wait for it") {
  const auto results = rank_results(2, [](Communicator& world) {
    GpuRank gpu(world, kCount);
    world.barrier();
    GpuRank::Values result;
    std::string end = outcome([&] {
      if (world.rank() == 0)
        launch(gpu.compute(),
               [] { fake_cuda::break_device(cudaErrorIllegalAddress); });
      step(gpu, 1, result);
    });
    gpu.comm().abort();
    cudaStreamSynchronize(gpu.compute());  // what was not done yet is dropped
    world.barrier();
    fake_cuda::break_device(cudaSuccess);
    return end;
  });
  for (const auto& result : results)
    CHECK(contains(result, "5 [cuda] an illegal memory access"));
  CHECK(all_communicators_are_gone());
}

// Nothing can be said to anybody before the exception has arrived.
TEST_CASE("an exception passes a communicator whose GPU hangs") {
  static Gate gate;  // the kernel may still leave it after the test
  const auto results = rank_results(2, [&](Communicator& world) {
    cudaStream_t compute = nullptr;
    std::string end = outcome([&] {
      GpuRank gpu(world, kCount);
      compute = gpu.compute();
      cudaLaunchHostFunc(compute, &Gate::kernel, &gate);
      gpu.comm().start({gpu.flat(), kCount, ElementType::kF32});
      gpu.comm().finish();
      throw DataError("[test] something else");
    });
    // Aborted, while what the regular end waits for still hangs.
    const bool gone = all_communicators_are_gone();
    world.barrier();
    gate.open();
    return gone ? end : "waited";
  });
  for (const auto& result : results)
    CHECK(contains(result, "[test] something else"));
  CHECK(all_communicators_are_gone());
}

// The last test here: the detector stays, and its lock would order threads
// where the thread sanitizer looks for order.
TEST_CASE("events order every use of gradients on GPUs") {
  static std::mutex mutex;
  static std::string races;
  static const bool once = [] {
    fake_cuda::detect_races([](const std::string& text) {
      const std::lock_guard lock(mutex);
      races += text + "\n";
    });
    return true;
  }();
  REQUIRE(once);
  for (const auto compression :
       {GradientCompression::kNone, GradientCompression::kFp16})
    CHECK(wrong_means(compression) == std::vector<std::string>(3, ""));
  CHECK(wrong_gathers() == std::vector<std::string>(3, ""));
  CHECK(races == "");
}
