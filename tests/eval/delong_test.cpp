#include "chexnet/eval/delong.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "eval/auroc.hpp"
#include "simulated_patients.hpp"
#include "support/catch.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

// scripts/reference/statistics_reference.py figures
TEST_CASE("DeLong's variance and test are those of MLstatkit") {
  const SyntheticCases cases;
  const auto a = delong(cases.a, cases.labels);
  REQUIRE(a);
  CHECK(a->auroc == Approx(0.8043057145372898).epsilon(1e-12));
  CHECK(a->variance == Approx(0.0005108200939334458).epsilon(1e-12));

  const auto test = delong_test(cases.a, cases.b, cases.labels);
  REQUIRE(test);
  CHECK(test->difference ==
        Approx(0.8043057145372898 - 0.7236946376683984).epsilon(1e-12));
  CHECK(test->variance == Approx(0.0012021847540482971).epsilon(1e-12));
  REQUIRE(test->p);
  CHECK(*test->p == Approx(0.020075923010007036).epsilon(1e-12));
  const double half = kNormal95 * std::sqrt(test->variance);
  CHECK(test->interval.low == Approx(test->difference - half));
  CHECK(test->interval.high == Approx(test->difference + half));
}

TEST_CASE("DeLong's interval is symmetric on the scale of the logit") {
  const SyntheticCases cases;
  const auto a = delong(cases.a, cases.labels);
  REQUIRE((a && a->interval));
  const auto logit = [](double p) { return std::log(p / (1 - p)); };
  const double below = logit(a->auroc) - logit(a->interval->low);
  const double above = logit(a->interval->high) - logit(a->auroc);
  CHECK(below == Approx(above));
  CHECK(below == Approx(1.959963984540054 * std::sqrt(a->variance) /
                        (a->auroc * (1 - a->auroc))));
}

TEST_CASE("the variance by patient is Obuchowski's over all pairs") {
  const SyntheticCases cases;
  const auto patients = number_patients(cases.patients);
  const auto a = delong_by_patient(cases.a, cases.labels, patients);
  REQUIRE(a);
  CHECK(a->variance == Approx(0.0003491577200626676).epsilon(1e-12));
  const auto test =
      delong_test_by_patient(cases.a, cases.b, cases.labels, patients);
  REQUIRE(test);
  CHECK(test->variance == Approx(0.001030681220818305).epsilon(1e-12));
}

TEST_CASE("DeLong is not defined where nothing varies") {
  const std::vector<double> scores = {1, 2, 3, 4};
  CHECK_FALSE(delong(scores, std::vector<float>{0, 0, 0, 1}));  // one positive
  CHECK_FALSE(delong(scores, std::vector<float>{0, 0, 0, 0}));
  CHECK_FALSE(delong(std::vector<double>{1, NAN, 2, 3},
                     std::vector<float>{0, 0, 1, 1}));
  const auto perfect = delong(scores, std::vector<float>{0, 0, 1, 1});
  REQUIRE(perfect);
  CHECK((perfect->auroc == 1 && perfect->variance == 0));
  CHECK_FALSE(perfect->interval);
  // All positives are of one patient.
  CHECK_FALSE(delong_by_patient(
      scores, std::vector<float>{0, 0, 1, 1},
      number_patients(std::vector<std::string>{"a", "b", "c", "c"})));
  const SyntheticCases cases;
  const auto same = delong_test(cases.a, cases.a, cases.labels);
  REQUIRE(same);
  CHECK((same->difference == 0 && same->variance == 0));
  CHECK_FALSE(same->p);
}

TEST_CASE("DeLong leaves out what is not labeled") {
  SyntheticCases cases;
  const auto without = delong(cases.a, cases.labels);
  cases.a.push_back(NAN);
  cases.labels.push_back(NAN);
  const auto with = delong(cases.a, cases.labels);
  REQUIRE((without && with));
  CHECK(with->variance == without->variance);
}

TEST_CASE("intervals of the variance by patient hold the true AUROC",
          "[arithmetic]") {
  std::vector<Interval> by_patient, by_image;
  for (uint64_t t = 0; t < 2000; ++t) {
    const SimulatedPatients sample(150, t);
    const auto patients = delong_by_patient(sample.scores, sample.labels,
                                            number_patients(sample.patients));
    const auto images = delong(sample.scores, sample.labels);
    REQUIRE((patients && patients->interval && images && images->interval));
    by_patient.push_back(*patients->interval);
    by_image.push_back(*images->interval);
  }
  CHECK(coverage_percent(by_patient) >= 93);
  CHECK(coverage_percent(by_patient) <= 97);
  CHECK(coverage_percent(by_image) < 93);
}
