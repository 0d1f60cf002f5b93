// The world of threads itself: above all that a rank may fail in it.
#include "support/thread_world.hpp"

#include <atomic>
#include <memory>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/comm/shared_work.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// Runs `body` on `ranks` ranks, and says how many of them ended with a
// HangError.
int hung_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  std::atomic<int> hung = 0;
  ThreadWorld world(ranks);
  const auto text = error_of<DataError>([&] {
    world.run([&](Communicator& comm) {
      try {
        body(comm);
      } catch (const HangError&) {
        ++hung;
        throw;
      }
    });
  });
  CHECK(text == "rank 1 fails");
  return hung;
}

void fail(const Communicator& comm) {
  if (comm.rank() == 1) throw DataError("rank 1 fails");
}

}  // namespace

TEST_CASE(
    "a rank that throws ends the collectives of the others, and its error is "
    "the one") {
  for (int collective = 0; collective < 5; ++collective) {
    CAPTURE(collective);
    CHECK(hung_ranks(4, [&](Communicator& comm) {
            comm.barrier();
            fail(comm);
            double value = 1;
            if (collective == 0) comm.barrier();
            if (collective == 1)
              comm.all_reduce(std::span(&value, 1), ReduceOp::kSum);
            if (collective == 2) broadcast_text(comm, "x", 1);
            if (collective == 3) gather_text(comm, "x");
            if (collective == 4) {
              comm.start({&value, 1, ElementType::kF64});
              comm.finish();
            }
          }) == 3);
  }
}

TEST_CASE("a rank that returns early ends the collectives of the others, too") {
  ThreadWorld world(2);
  const auto text = error_of<HangError>([&] {
    world.run([](Communicator& comm) {
      if (comm.rank() == 0) comm.barrier();
    });
  });
  CHECK(text == "[threads] a collective without rank 1");
}

TEST_CASE("a world can be used again after a failure") {
  ThreadWorld world(3);
  CHECK(error_of<DataError>([&] {
          world.run([](Communicator& comm) { fail(comm); });
        }) == "rank 1 fails");
  std::atomic<int> done = 0;
  world.run([&](Communicator& comm) {
    comm.barrier();
    ++done;
  });
  CHECK(done == 3);
}

TEST_CASE(
    "a rank that fails in the middle of a step ends the reduction of the "
    "others") {
  const int hung = hung_ranks(3, [](Communicator& comm) {
    std::vector<float> flat(10, 1.0F);
    BucketedReducer reducer(comm, {{0, 4, false}, {4, 10, false}}, flat.data(),
                            ElementType::kF32);
    for (int step = 0; step < 3; ++step) {
      reducer.begin();
      reducer.written_to(5);
      if (step == 2) fail(comm);
      reducer.written_to(10);
      reducer.finish();
    }
  });
  CHECK(hung == 2);
}

TEST_CASE(
    "shared work ends when a rank fails outside of its work, and stops the "
    "others' work") {
  // Outlives the test: the work's threads are let go.
  const auto stopped = std::make_shared<std::atomic<int>>(0);
  const int hung = hung_ranks(3, [stopped](Communicator& comm) {
    fail(comm);
    share_work(comm, {"looking", 60}, [stopped](WorkProgress& progress) {
      struct Ended {
        std::shared_ptr<std::atomic<int>> count;
        ~Ended() { ++*count; }
      } ended{stopped};
      for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        progress.advance();
      }
    });
  });
  CHECK(hung == 2);
  for (int i = 0; i < 5000 && *stopped < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(*stopped == 2);
}
