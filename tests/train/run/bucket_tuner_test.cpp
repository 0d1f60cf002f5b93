#include "chexnet/train/run/bucket_tuner.hpp"

#include <functional>
#include <map>

#include "support/catch.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

// Seconds of a step by bucket size and by how many steps this size has had.
using StepTime = std::function<double(double bucket_mb, int step_of_size)>;

// Tunes to the end; returns how many steps each size was given.
std::map<double, int> tune(BucketTuner& tuner, Communicator& comm,
                           const StepTime& time) {
  std::map<double, int> steps;
  for (int i = 0; i < 1000 && !tuner.done(); ++i) {
    const double bucket_mb = tuner.bucket_mb();
    tuner.step(time(bucket_mb, steps[bucket_mb]++), comm);
  }
  return steps;
}

}  // namespace

TEST_CASE(
    "each bucket size has the same number of steps and the shortest wins") {
  const auto solo = solo_communicator();
  BucketTuner tuner;
  const auto steps =
      tune(tuner, *solo, [](double mb, int) { return mb == 8 ? 0.9 : 1.0; });
  CHECK(tuner.done());
  CHECK(tuner.bucket_mb() == 8);
  CHECK(steps.size() == 6);
  for (const auto& [mb, count] : steps) CHECK(count == BucketTuner::kStepsEach);
}

TEST_CASE("the first steps with a bucket size warm up and do not count") {
  const auto solo = solo_communicator();
  BucketTuner tuner;
  tune(tuner, *solo, [](double mb, int step) {
    if (mb != 2) return 1.0;
    return step < 2 ? 50.0 : 0.5;
  });
  CHECK(tuner.bucket_mb() == 2);
}

TEST_CASE("a single slow step of a bucket size does not speak against it") {
  const auto solo = solo_communicator();
  BucketTuner tuner;
  tune(tuner, *solo, [](double mb, int step) {
    if (mb != 32) return 1.0;
    return step == 5 ? 50.0 : 0.5;
  });
  CHECK(tuner.bucket_mb() == 32);
}

TEST_CASE(
    "all ranks take the bucket size that is best for the slowest of them") {
  const auto chosen = rank_results(3, [](Communicator& comm) {
    BucketTuner tuner;
    // 4 MB is the shortest on ranks 0 and 1 and by far the longest on rank 2.
    tune(tuner, comm, [&](double mb, int) {
      if (mb == 4) return comm.rank() == 2 ? 9.0 : 0.1;
      return mb == 16 ? 0.8 : 1.0;
    });
    return tuner.bucket_mb();
  });
  CHECK(chosen == std::vector<double>{16, 16, 16});
}

TEST_CASE("a step says whether the next has another bucket size") {
  const auto solo = solo_communicator();
  BucketTuner tuner;
  for (int s = 1; s < BucketTuner::kStepsEach; ++s)
    CHECK_FALSE(tuner.step(1, *solo));
  const double first = tuner.bucket_mb();
  CHECK(tuner.step(1, *solo));
  CHECK(tuner.bucket_mb() != first);
}

TEST_CASE("a bucket size that was chosen stays") {
  const auto solo = solo_communicator();
  BucketTuner tuner;
  tune(tuner, *solo, [](double mb, int) { return mb == 4 ? 0.5 : 1.0; });
  for (int i = 0; i < 100; ++i) CHECK_FALSE(tuner.step(100, *solo));
  CHECK(tuner.bucket_mb() == 4);
}
