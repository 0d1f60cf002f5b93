#include "chexnet/train/run/rate_curve.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

// Flat, falling by half around `fall`, rising without end behind `rise`.
double loss_at(double rate, double fall, double rise) {
  const double x = std::log10(rate / fall);
  return 0.7 - 0.5 / (1 + std::exp(-4 * x)) + std::pow(rate / rise, 2);
}

RateCurve curve_of(const RateRange& range, double fall, double rise) {
  RateCurve curve;
  for (int64_t i = 0; i < range.steps; ++i)
    if (!curve.add(range.rate(i), loss_at(range.rate(i), fall, rise))) break;
  return curve;
}

}  // namespace

TEST_CASE("rates rise by an equal factor from the first to the last") {
  const RateRange range{1e-6, 1e-2, 5};
  for (int64_t i = 0; i < range.steps; ++i)
    CHECK(range.rate(i) ==
          Approx(std::pow(10.0, static_cast<double>(i) - 6)).epsilon(1e-12));
}

TEST_CASE("the suggested rate is where the loss falls fastest") {
  for (const double fall : {1e-4, 1e-3}) {
    const RateCurve curve = curve_of({1e-7, 10, 2000}, fall, 0.5);
    INFO("falls at " << fall);
    CHECK(curve.diverged());
    CHECK(curve.points().size() < 2000);
    REQUIRE(curve.suggested().has_value());
    // The average lags behind by some steps.
    CHECK(*curve.suggested() > fall);
    CHECK(*curve.suggested() < 2 * fall);
    CHECK(curve.lowest()->rate > *curve.suggested());
  }
}

TEST_CASE("a loss that never falls, or is no number, suggests nothing") {
  RateCurve rising;
  for (int i = 0; i < 50; ++i) CHECK(rising.add(1e-5 * (i + 1), 1 + 0.01 * i));
  CHECK_FALSE(rising.suggested().has_value());
  CHECK_FALSE(rising.diverged());
  RateCurve broken;
  CHECK(broken.lowest() == nullptr);
  CHECK_FALSE(broken.add(1e-5, NAN));
  CHECK(broken.diverged());
  CHECK_FALSE(broken.suggested().has_value());
}

TEST_CASE("the smoothed loss is the mean of the first steps, not their sum") {
  RateCurve curve;
  curve.add(1e-5, 2);
  CHECK(curve.points().back().smoothed == Approx(2));
  curve.add(1e-4, 4);
  CHECK(curve.points().back().smoothed ==
        Approx((0.98 * 2 + 4) / 1.98).epsilon(1e-12));
}
