#include "chexnet/train/run/rate_curve.hpp"

#include <cmath>

#include "chexnet/core/philox.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

// Flat, falling by half around `fall`, rising without end after `rise`.
double loss_at(double rate, double fall, double rise) {
  const double x = std::log10(rate / fall);
  return 0.7 - 0.5 / (1 + std::exp(-4 * x)) + std::pow(rate / rise, 2);
}

double noise_of(int64_t i) {
  return Random(5, Purpose::kTest, static_cast<uint64_t>(i)).normal();
}

RateCurve curve_of(const RateRange& range, double fall, double rise,
                   double noise) {
  RateCurve curve;
  for (int64_t i = 0; i < range.steps; ++i)
    if (!curve.add(range.rate(i),
                   loss_at(range.rate(i), fall, rise) + noise * noise_of(i)))
      break;
  return curve;
}

}  // namespace

TEST_CASE("rates rise by an equal factor from the first to the last") {
  const RateRange range{1e-6, 1e-2, 5};
  for (int64_t i = 0; i < range.steps; ++i)
    CHECK(range.rate(i) ==
          Approx(std::pow(10.0, static_cast<double>(i) - 6)).epsilon(1e-12));
}

TEST_CASE("the suggested rate is half-way down, about where it is steepest") {
  for (const double fall : {1e-4, 1e-3}) {
    const RateCurve curve = curve_of({1e-7, 10, 200}, fall, 0.5, 0.02);
    INFO("falls at " << fall);
    CHECK(curve.diverged());
    CHECK(curve.points().size() < 200);
    const auto suggested = curve.suggested();
    REQUIRE(suggested.has_value());
    CHECK(suggested->rate > fall / 2);
    CHECK(suggested->rate < fall * 2);
    CHECK(suggested->lowest > suggested->rate);
  }
}

TEST_CASE("noise, a loss that rises, and no number suggest nothing") {
  RateCurve noise, rising, broken;
  for (int i = 0; i < 100; ++i) {
    CHECK(noise.add(1e-5 * (i + 1), 1 + 0.1 * noise_of(i)));
    CHECK(rising.add(1e-5 * (i + 1), 1 + 0.01 * i));
  }
  CHECK_FALSE(noise.suggested().has_value());
  CHECK_FALSE(rising.suggested().has_value());
  CHECK_FALSE(rising.diverged());
  CHECK_FALSE(broken.add(1e-5, NAN));
  CHECK(broken.diverged());
  CHECK_FALSE(broken.suggested().has_value());
  CHECK(broken.smoothed().empty());
}

TEST_CASE("a point is smoothed by those around it, at the ends by fewer") {
  RateCurve curve;
  for (int i = 0; i < 10; ++i) curve.add(1e-5 * (i + 1), i);
  const auto smoothed = curve.smoothed();
  CHECK(smoothed[0] == Approx(1));
  CHECK(smoothed[5] == Approx(5));
  CHECK(smoothed[9] == Approx(8));
}
