#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/eval/comparison.hpp"
#include "support/catch.hpp"
#include "support/seeded_runs.hpp"

using namespace chexnet;

TEST_CASE("97.5 % of Student's t are those of its tables") {
  for (const auto& [df, t] :
       std::array<std::pair<double, double>, 6>{{{1, 12.7062},
                                                 {2, 4.30265},
                                                 {2.5, 3.57465},
                                                 {4, 2.77645},
                                                 {30, 2.04227},
                                                 {1e9, 1.95996}}})
    CHECK(student_95(df) == Approx(t).margin(2e-4));
}

TEST_CASE(
    "no interval of a difference of AUROCs goes beyond what is possible") {
  const std::array<double, 2> far = {0.1, 0.9};
  const Interval found = interval_over_seeds(far, 0.01);
  CHECK((found.low == -1 && found.high == 1));
  // One patient's images turned over: the difference is 1 but for one pair.
  const std::array<double, 6> good = {0.9, 0.8, 0.3, 0.4, 0.2, 0.1},
                              bad = {0.1, 0.2, 0.9, 0.8, 0.7, 0.95};
  const std::array<float, 6> labels = {1, 1, 1, 0, 0, 0};
  const auto test = delong_test(good, bad, labels);
  REQUIRE(test);
  CHECK((test->difference < 1 && test->interval.high == 1));
}

// Standard deviations of a recipe over seeds, of a difference over patients:
// those for which intervals over patients alone hold the difference in 63 to
// 92 of 100 experiments, and intervals over seeds alone in 70 to 94.
TEST_CASE("intervals over seeds and patients hold 95 % of differences") {
  constexpr int kRepeats = 1500;
  for (const auto& [of_seed, of_patients] :
       std::array<std::pair<double, double>, 2>{
           {{0.012, 0.005}, {0.007, 0.010}}})
    for (const size_t seeds : {3, 5}) {
      int held = 0;
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        Random random(seeds, Purpose::kTest, static_cast<uint64_t>(repeat));
        const double patients = of_patients * random.normal();
        std::vector<double> by_seed;  // of two recipes that are equal
        for (size_t s = 0; s < seeds; ++s)
          by_seed.push_back(patients + of_seed * random.normal() -
                            of_seed * random.normal());
        const Interval found =
            interval_over_seeds(by_seed, of_patients * of_patients);
        if (found.low <= 0 && 0 <= found.high) ++held;
      }
      INFO(of_seed << " " << of_patients << " " << seeds << ": " << held);
      CHECK(held >= kRepeats * 91 / 100);
    }
}

TEST_CASE("recipes are compared by the means over their seeds") {
  std::vector<Predictions> weak = seeded_predictions(3, 0.8),
                           strong = seeded_predictions(3, 2.0);
  for (auto* recipe : {&weak, &strong})
    for (Predictions& scores : *recipe) scores.by = ScoredBy::kStudy;
  const auto of = [](const std::vector<Predictions>& all, size_t seeds) {
    std::vector<const Predictions*> some;
    for (size_t s = 0; s < seeds; ++s) some.push_back(&all[s]);
    return some;
  };
  const BootstrapOptions draws{.resamples = 500};
  const auto three = compare_recipes(of(weak, 3), of(strong, 3), draws);
  REQUIRE(three.findings.size() == 2);
  double sum = 0;
  for (size_t s = 0; s < 3; ++s)
    sum += *score(strong[s]).auroc[0] - *score(weak[s]).auroc[0];
  CHECK(*three.findings[0].value == Approx(sum / 3));
  REQUIRE(three.mean.of_recipes);
  CHECK(*three.mean.value ==
        Approx((*three.findings[0].value + *three.findings[1].value) / 2));
  CHECK((three.mean.of_recipes->low > 0 &&
         three.mean.of_recipes->high > *three.mean.value));
  const auto turned = compare_recipes(of(strong, 3), of(weak, 3), draws);
  CHECK(*turned.mean.value == Approx(-*three.mean.value));
  CHECK(turned.mean.of_recipes->low == Approx(-three.mean.of_recipes->high));
  // With one seed the result is that of compare() for these two networks.
  const auto one = compare_recipes(of(weak, 1), of(strong, 1), draws);
  const auto networks = compare(strong[0], weak[0], {}, draws);
  CHECK(*one.mean.value == Approx(*networks.mean_difference.value));
  CHECK_FALSE(one.mean.of_recipes);
  CHECK(*one.mean.of_networks == networks.mean_difference.interval->interval);
}
