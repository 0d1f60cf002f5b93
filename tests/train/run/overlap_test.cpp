#include "chexnet/train/run/overlap.hpp"

#include "support/catch.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

TEST_CASE("what of loading is hidden is what nobody waited for") {
  // {loading, exposed, wait, all} of ten steps on each of two ranks.
  const auto overlap = [](const StepTimes& first, const StepTimes& second) {
    return rank_results(2,
                        [&](Communicator& comm) {
                          return mean_overlap(
                              comm, comm.rank() == 0 ? first : second);
                        })
        .back();
  };
  const Overlap most =
      overlap({0.30, 0.012, 0.012, 1.19, 10}, {0.32, 0.0128, 0.0128, 1.19, 10});
  CHECK(most.hidden == Approx(0.96));
  CHECK(overlap_text(most) ==
        "loading 31 ms, computing 118 ms, step 119 ms: 96 % of loading hidden");
  CHECK(overlap_text({.loading_s = 0.0004, .computing_s = 0.02})
            .starts_with("loading 0.4 ms, computing 20 ms"));
  CHECK(overlap({0.3, 0, 0, 1, 10}, {0.3, 0, 0, 1, 10}).hidden == 1);
  CHECK(overlap({0, 0, 0, 1, 10}, {0, 0, 0, 1, 10}).hidden ==
        1);  // nothing to hide
  // Waiting for storage to answer, or for a core, may take longer than loading.
  CHECK(overlap({0.3, 0.03, 0.7, 1, 10}, {0.3, 0.03, 0.7, 1, 10}).hidden ==
        Approx(0.9));
  const StepTimes window = StepTimes{5, 2, 3, 9, 30}.since({1, 1, 1, 3, 10});
  CHECK(window.exposed_s == 1);
  CHECK((window.loading_s == 4 && window.data_wait_s == 2));
  CHECK((window.all_s == 6 && window.steps == 20));
}
