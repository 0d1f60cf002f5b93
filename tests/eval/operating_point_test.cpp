#include "chexnet/eval/operating_point.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

// scripts/reference/statistics_reference.py figures
TEST_CASE("thresholds are those of scikit-learn's ROC curve") {
  const SyntheticCases cases;
  CHECK(youden_threshold(cases.a, cases.labels) == 0.2907801418439716);
  CHECK(threshold_of_sensitivity(cases.a, cases.labels, 0.9) ==
        0.3333333333333333);
  CHECK(threshold_of_specificity(cases.a, cases.labels, 0.9) ==
        0.6524822695035462);
}

TEST_CASE("a threshold reaches what was asked for, and the next does not") {
  const SyntheticCases cases;
  const double all = std::numeric_limits<double>::infinity();
  for (const double wanted : {0.0, 0.07, 0.5, 0.8, 0.95, 1.0}) {
    const auto found = threshold_of_sensitivity(cases.b, cases.labels, wanted);
    REQUIRE(found);
    CHECK(*confusion_at(*found, cases.b, cases.labels).sensitivity().value() >=
          wanted);
    const auto above = std::nextafter(*found, all);
    const auto next = confusion_at(above, cases.b, cases.labels);
    CHECK((wanted == 0 || *next.sensitivity().value() < wanted));
  }
  for (const double wanted : {0.0, 0.5, 0.8, 0.95}) {
    const auto found = threshold_of_specificity(cases.b, cases.labels, wanted);
    REQUIRE(found);
    const auto here = confusion_at(*found, cases.b, cases.labels);
    CHECK(*here.specificity().value() >= wanted);
    // Any lower one that calls more positives right is not specific enough.
    for (const double lower : cases.b) {
      const auto there = confusion_at(lower, cases.b, cases.labels);
      if (there.true_positives > here.true_positives)
        CHECK(*there.specificity().value() < wanted);
    }
  }
}

TEST_CASE("equal Youden indices choose the highest threshold") {
  // 1/2 at 4 and at 2.
  const std::vector<double> scores = {1, 2, 3, 4};
  CHECK(youden_threshold(scores, std::vector<float>{0, 1, 0, 1}) == 4);
}

TEST_CASE("no threshold where a class has no member or none is specific") {
  const std::vector<double> scores = {1, 2};
  CHECK_FALSE(youden_threshold(scores, std::vector<float>{1, 1}));
  CHECK_FALSE(threshold_of_sensitivity(scores, std::vector<float>{0, 0}, 0.5));
  CHECK_FALSE(threshold_of_specificity(scores, std::vector<float>{1, 0}, 1));
  CHECK(threshold_of_specificity(scores, std::vector<float>{0, 1}, 1) == 2);
}

TEST_CASE("figures at a threshold are those of the table") {
  const SyntheticCases cases;
  const Confusion c = confusion_at(0.5, cases.a, cases.labels);
  CHECK((c.true_negatives == 193 && c.false_positives == 84));
  CHECK((c.false_negatives == 41 && c.true_positives == 82));
  CHECK(*c.f1() == Approx(0.5674740484429066).epsilon(1e-12));
  CHECK(*c.sensitivity().value() == Approx(82.0 / 123));
  CHECK(*c.specificity().value() == Approx(193.0 / 277));
  CHECK(*c.ppv().value() == Approx(82.0 / 166));
  CHECK(*c.npv().value() == Approx(193.0 / 234));
  CHECK(c.sensitivity().interval() == wilson_interval(82, 123));
  CHECK_FALSE(c.few_positives());
  // At the prevalence of the images themselves both rules agree.
  CHECK(*c.ppv_at(123.0 / 400) == Approx(82.0 / 166));
  CHECK(*c.npv_at(123.0 / 400) == Approx(193.0 / 234));
  // Where the finding is rare a positive call says little.
  CHECK(*c.ppv_at(0.01) == Approx(0.0217237).epsilon(1e-5));
}

TEST_CASE("figures that divide by nothing are not defined") {
  const std::vector<double> scores = {0.1, 0.2};
  const Confusion none = confusion_at(0.5, scores, std::vector<float>{0, NAN});
  CHECK(none.few_positives());
  CHECK((none.true_negatives == 1 && none.positives() == 0));
  CHECK_FALSE(none.sensitivity().value());
  CHECK_FALSE(none.sensitivity().interval());
  CHECK_FALSE(none.ppv().value());
  CHECK_FALSE(none.f1());
  CHECK_FALSE(none.ppv_at(0.1));
}
