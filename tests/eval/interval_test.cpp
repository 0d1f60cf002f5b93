#include "chexnet/eval/interval.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("Wilson's interval has the values of SciPy") {
  // scipy.stats.binomtest(hits, cases).proportion_ci(method="wilson")
  struct Row {
    size_t hits, cases;
    double low, high;
  };
  const Row rows[] = {
      {0, 10, 0, 0.27753279986288926},
      {10, 10, 0.7224672001371109, 1},
      {3, 7, 0.1582198552514697, 0.7495416354723428},
      {81, 263, 0.2552885198782742, 0.36620957698280004},
      {999, 1000, 0.9943574414020421, 0.9998234536293739},
  };
  for (const Row& row : rows) {
    const auto interval = wilson_interval(row.hits, row.cases);
    REQUIRE(interval);
    CHECK(interval->low == Approx(row.low).margin(1e-15).epsilon(1e-12));
    CHECK(interval->high == Approx(row.high).epsilon(1e-12));
  }
  CHECK_FALSE(wilson_interval(0, 0));
}

TEST_CASE("quantiles lie between two values as numpy's") {
  const std::vector<double> values = {1, 2, 4, 8};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 1) == 8);
  CHECK(quantile(values, 0.5) == 3);
  CHECK(quantile(values, 0.9) == Approx(6.8).epsilon(1e-15));
  CHECK(quantile(std::vector<double>{3}, 0.3) == 3);
}

TEST_CASE("a percentile interval counts the resamples that it leaves out") {
  std::vector<double> resamples = {NAN};
  for (int i = 1000; i >= 0; --i) resamples.push_back(i);
  const auto interval = percentile_interval(resamples);
  REQUIRE(interval);
  CHECK(interval->interval.low == Approx(25));
  CHECK(interval->interval.high == Approx(975));
  CHECK(interval->left_out == 1);
  CHECK_FALSE(percentile_interval(std::vector<double>{NAN, NAN}));
}
