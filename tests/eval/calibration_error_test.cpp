#include "chexnet/eval/calibration_error.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "support/catch.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {
double error_of(const std::vector<double>& p, const std::vector<float>& labels,
                Binning binning) {
  return *calibration_error(reliability_bins(p, labels, binning));
}
}  // namespace

// scripts/reference/statistics_reference.py figures
TEST_CASE("Brier score and calibration error are scikit-learn's") {
  const SyntheticCases cases;
  CHECK(*brier_score(cases.a, cases.labels) ==
        Approx(0.1740532417886424).epsilon(1e-12));
  CHECK(*brier_score(cases.b, cases.labels) ==
        Approx(0.20871672052939366).epsilon(1e-12));
  CHECK(error_of(cases.a, cases.labels, Binning::kEqualWidth) ==
        Approx(0.1508333333333333).epsilon(1e-12));
  CHECK(error_of(cases.a, cases.labels, Binning::kEqualMass) ==
        Approx(0.1670035460992908).epsilon(1e-12));
  CHECK(error_of(cases.b, cases.labels, Binning::kEqualWidth) ==
        Approx(0.17054824561403506).epsilon(1e-12));
  CHECK(error_of(cases.b, cases.labels, Binning::kEqualMass) ==
        Approx(0.16357456140350876).epsilon(1e-12));
}

TEST_CASE("reliability bins are those of scikit-learn's calibration_curve") {
  const SyntheticCases cases;
  const auto bins =
      reliability_bins(cases.a, cases.labels, Binning::kEqualWidth);
  REQUIRE(bins.size() == 10);
  const size_t counts[] = {39, 37, 46, 55, 57, 55, 56, 22, 17, 16};
  size_t at = 0;
  for (const size_t count : counts) CHECK(bins[at++].cases == count);
  CHECK(bins[3].rate() == Approx(0.34545455).epsilon(1e-7));
  CHECK(bins[3].mean_probability == Approx(0.35061251).epsilon(1e-7));
  CHECK((bins[3].low == Approx(0.3) && bins[3].high == Approx(0.4)));
}

TEST_CASE("a probability on an edge is in the bin below, equal ones in one") {
  const std::vector<double> p = {0, 0.5, 0.5, 0.5, 0.5, 1};
  const std::vector<float> labels = {0, 1, 0, 0, NAN, 1};
  const auto width = reliability_bins(p, labels, Binning::kEqualWidth, 2);
  CHECK((width[0].cases == 4 && width[1].cases == 1));
  const auto mass = reliability_bins(p, labels, Binning::kEqualMass, 5);
  size_t cases = 0, filled = 0;
  for (const auto& bin : mass) {
    cases += bin.cases;
    filled += bin.cases > 0 ? 1 : 0;
  }
  CHECK((cases == 5 && filled == 3));
}

TEST_CASE("what is no probability has neither Brier score nor bins") {
  const std::vector<float> labels = {0, 1, NAN};
  CHECK_FALSE(brier_score(std::vector<double>{0.1, 1.7, 0.2}, labels));
  CHECK_FALSE(brier_score(std::vector<double>{0.1, NAN, 0.2}, labels));
  CHECK(brier_score(std::vector<double>{0, 1, NAN}, labels) == 0);
  CHECK_FALSE(brier_score({}, {}));
  CHECK(reliability_bins(std::vector<double>{-1, 1, 0}, labels,
                         Binning::kEqualMass)
            .empty());
  CHECK_FALSE(calibration_error({}));
}
