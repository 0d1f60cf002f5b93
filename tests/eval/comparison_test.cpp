#include "chexnet/eval/comparison.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

Predictions of_model(const std::vector<double>& scores) {
  const SyntheticCases cases;
  Predictions p;
  p.findings = {"Pleural Effusion"};
  p.labels = cases.labels;
  p.patients = cases.patients;
  p.probabilities = scores;
  for (size_t i = 0; i < 400; ++i) p.images.push_back(std::to_string(i));
  return p;
}

const BootstrapOptions kSome{.resamples = 2000, .seed = 1};

}  // namespace

// scripts/reference/statistics_reference.py figures
TEST_CASE("two models are compared on the same images") {
  const SyntheticCases cases;
  const Predictions a = of_model(cases.a);
  Predictions b = of_model(cases.b);
  b.findings = {"effusion"};
  const Comparison c = compare(a, b, {}, kSome);
  CHECK((c.images == 400 && c.only_one == 0));
  REQUIRE(c.findings.size() == 1);
  const FindingComparison& f = c.findings[0];
  CHECK(f.finding == "Pleural Effusion");
  CHECK((f.positives == 123 && f.negatives == 277));
  CHECK(*f.difference.value ==
        Approx(0.8043057145372898 - 0.7236946376683984).epsilon(1e-12));
  REQUIRE((f.difference.interval && f.delong && f.delong->p && f.p));
  CHECK(f.delong->variance == Approx(0.001030681220818305).epsilon(1e-12));
  // Two ways to the same.
  const Interval& drawn = f.difference.interval->interval;
  CHECK(drawn.low == Approx(f.delong->interval.low).margin(0.01));
  CHECK(drawn.high == Approx(f.delong->interval.high).margin(0.01));
  CHECK(*f.p == Approx(*f.delong->p).margin(0.01));
  CHECK(c.mean_difference.value == f.difference.value);
  CHECK(*c.mean_p == *f.p);
}

TEST_CASE("turned round, a comparison has the other sign and the same p") {
  const SyntheticCases cases;
  const Predictions a = of_model(cases.a), b = of_model(cases.b);
  const auto f = compare(a, b, {}, kSome).findings[0];
  const auto g = compare(b, a, {}, kSome).findings[0];
  CHECK(*f.difference.value == -*g.difference.value);
  CHECK(f.difference.interval->interval.low ==
        Approx(-g.difference.interval->interval.high));
  CHECK(*f.p == *g.p);
}

TEST_CASE("a model does not differ from itself") {
  const Predictions a = of_model(SyntheticCases().a);
  const auto f = compare(a, a, {}, kSome).findings[0];
  CHECK(*f.difference.value == 0);
  CHECK_FALSE(f.difference.interval);  // no resample changes it
  CHECK(*f.p == 1);
}

TEST_CASE("images meet by name, and those of one table alone are counted") {
  const SyntheticCases cases;
  const Predictions a = of_model(cases.a);
  Predictions b = of_model(cases.b);
  // The first two are swapped, the third was not scored, the last is another.
  std::swap(b.images[0], b.images[1]);
  std::swap(b.labels[0], b.labels[1]);
  std::swap(b.probabilities[0], b.probabilities[1]);
  b.reasons.resize(400);
  b.reasons[2] = "damaged";
  b.images[399] = "other";
  const Comparison c = compare(a, b, {}, kSome);
  CHECK((c.images == 398 && c.only_one == 3));
}

TEST_CASE("tables that cannot be compared are refused") {
  const SyntheticCases cases;
  const Predictions a = of_model(cases.a);
  const auto refused = [&](const Predictions& b) {
    return error_of<DataError>([&] { compare(a, b, {}, kSome); });
  };
  Predictions b = a;
  b.labels[7] = 1 - b.labels[7];
  b.labels[8] = NAN;
  CHECK(refused(b).find("labels differ between the tables: 2") !=
        std::string::npos);
  b = a;
  b.findings = {"Mass"};
  CHECK(refused(b).find("no finding is in both") != std::string::npos);
  b = a;
  for (auto& image : b.images) image += ".png";
  CHECK(refused(b).find("no image is in both") != std::string::npos);
}
