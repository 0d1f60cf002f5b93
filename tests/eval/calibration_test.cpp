#include "chexnet/eval/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/eval/calibration_error.hpp"
#include "eval/auroc.hpp"
#include "support/catch.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

// Cases whose true probability is 1 / (1 + exp(-x)), x normal.
struct KnownCases {
  std::vector<double> logits;
  std::vector<float> labels;
  explicit KnownCases(uint64_t seed) {
    Random random(seed, Purpose::kTest, 0);
    for (int i = 0; i < 20000; ++i) {
      logits.push_back(random.normal());
      const double p = 1 / (1 + std::exp(-logits.back()));
      labels.push_back(random.chance(p) ? 1.0f : 0.0f);
    }
  }
  std::vector<double> probabilities(double temperature) const {
    std::vector<double> p;
    for (const double x : logits)
      p.push_back(1 / (1 + std::exp(-x / temperature)));
    return p;
  }
};

template <class Map>
std::vector<double> mapped(const Map& map, std::vector<double> values) {
  std::ranges::transform(values, values.begin(), map);
  return values;
}

}  // namespace

// scripts/reference/statistics_reference.py figures
TEST_CASE("the temperature is where SciPy finds the least cross-entropy") {
  const SyntheticCases cases;
  CHECK(fit_temperature(cases.a, cases.labels)->temperature ==
        Approx(0.7840626555889709).epsilon(1e-12));
  CHECK(fit_temperature(cases.b, cases.labels)->temperature ==
        Approx(1.2306656362423354).epsilon(1e-12));
}

TEST_CASE("an isotonic map is scikit-learn's of the same targets") {
  const SyntheticCases cases;
  const auto map = fit_isotonic(cases.a, cases.labels);
  REQUIRE(map);
  CHECK((*map)(0) == Approx(0.003584229390681003).epsilon(1e-12));
  CHECK((*map)(0.2855) == Approx(0.22887559503067806).epsilon(1e-12));
  CHECK((*map)(0.4) == Approx(0.3093230058927161).epsilon(1e-12));
  CHECK((*map)(0.71) == Approx(0.5249735483870946).epsilon(1e-12));
  CHECK((*map)(0.7145) == Approx(0.6817609999999998).epsilon(1e-12));
  CHECK((*map)(0.72) == Approx(0.8733901075268796).epsilon(1e-12));
  CHECK((*map)(1) == Approx(0.992).epsilon(1e-12));
  CHECK(map->from.size() == 8);
  CHECK(map->from.size() == map->to.size());
  CHECK(std::ranges::is_sorted(map->from));
  CHECK(std::ranges::is_sorted(map->to));
}

TEST_CASE("a temperature fitted on some images calibrates others") {
  const KnownCases validation(1), test(2);
  const auto sharp = validation.probabilities(0.4);
  const auto scaling = fit_temperature(sharp, validation.labels);
  REQUIRE(scaling);
  CHECK(scaling->temperature == Approx(2.5).epsilon(0.05));
  const auto before = test.probabilities(0.4);
  const auto after = mapped(*scaling, before);
  CHECK(*brier_score(after, test.labels) < *brier_score(before, test.labels));
  CHECK(*auroc(after, test.labels) == *auroc(before, test.labels));
}

TEST_CASE("an isotonic map fitted on some images calibrates others") {
  const KnownCases validation(1), test(2);
  const auto map =
      fit_isotonic(validation.probabilities(0.4), validation.labels);
  REQUIRE(map);
  const auto before = test.probabilities(0.4);
  const auto after = mapped(*map, before);
  const auto error = [&](const std::vector<double>& p) {
    return *calibration_error(
        reliability_bins(p, test.labels, Binning::kEqualWidth));
  };
  CHECK(error(before) > 0.05);
  CHECK(error(after) < 0.02);
}

TEST_CASE("a temperature stays within its limits") {
  const std::vector<float> labels = {0, 0, 1, 1};
  CHECK(fit_temperature(std::vector<double>{0.4999, 0.4998, 0.5001, 0.5002},
                        labels)
            ->temperature == kLeastTemperature);
  CHECK(fit_temperature(std::vector<double>{0.9, 0.8, 0.2, 0.1}, labels)
            ->temperature == kMostTemperature);
  const TemperatureScaling two{2};
  CHECK(two(0.5) == 0.5);
  CHECK((two(0) > 0 && two(1) < 1));
}

TEST_CASE("cases that are separated make no other case certain") {
  std::vector<double> p;
  std::vector<float> labels;
  for (int i = 0; i < 100; ++i) {
    labels.push_back(i < 15 ? 1 : 0);
    p.push_back(i < 15 ? 0.6 + 0.01 * i : 0.4 - 0.004 * i);
  }
  const auto scaling = fit_temperature(p, labels);
  const auto map = fit_isotonic(p, labels);
  REQUIRE((scaling && map));
  CHECK((*scaling)(0.45) > 0.1);
  CHECK((*scaling)(0.01) > 1e-9);
  CHECK((*map)(0.01) == Approx(1.0 / 87));
  CHECK((*map)(0.9) == Approx(16.0 / 17));
  // Of four, by scripts/reference/statistics_reference.py's temperature().
  CHECK(fit_temperature(std::vector<double>{0.1, 0.2, 0.8, 0.9},
                        std::vector<float>{0, 0, 1, 1})
            ->temperature == Approx(1.693675022186285).epsilon(1e-12));
}

TEST_CASE("nothing is fitted to one class, or to what is no probability") {
  const std::vector<double> p = {0.1, 0.9};
  CHECK_FALSE(fit_temperature(p, std::vector<float>{1, 1}));
  CHECK_FALSE(fit_isotonic(p, std::vector<float>{0, NAN}));
  CHECK_FALSE(
      fit_isotonic(std::vector<double>{0.1, 3}, std::vector<float>{0, 1}));
}
