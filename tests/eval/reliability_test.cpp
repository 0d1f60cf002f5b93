#include "chexnet/eval/reliability.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

Predictions cases_from(size_t first) {
  const SyntheticCases cases;
  Predictions p;
  p.findings = {"Mass"};
  for (size_t i = first; i < 400; i += 2) {
    p.images.push_back(std::to_string(i));
    p.labels.push_back(cases.labels[i]);
    p.probabilities.push_back(cases.a[i]);
  }
  return p;
}

}  // namespace

TEST_CASE("what was fitted on validation is measured on test") {
  const Predictions test = cases_from(0), validation = cases_from(1);
  const auto rules = choose_rules(validation, {}, {});
  const auto r = reliability_of(test, {}, &rules);
  REQUIRE(r.size() == 3);
  CHECK((r[0].calibration == "none" && r[1].calibration == "temperature" &&
         r[2].calibration == "isotonic"));
  CHECK(*r[0].brier == Approx(*brier_score(test.probabilities, test.labels)));
  std::vector<double> mapped;
  for (const double p : test.probabilities)
    mapped.push_back((*rules.findings[0].isotonic)(p));
  CHECK(*r[2].brier == Approx(*brier_score(mapped, test.labels)));
  CHECK(*r[2].brier < *r[0].brier);  // the scores are far from probabilities
  for (const auto& one : r) {
    CHECK(one.equal_widths.size() == 10);
    size_t cases = 0;
    for (const auto& bin : one.equal_masses) cases += bin.cases;
    CHECK(cases == 200);
    CHECK(one.positives + one.negatives == 200);
  }
  CHECK((r[0].fitted_on_positives == 0 &&
         r[1].fitted_on_positives == rules.findings[0].positives));
}

TEST_CASE("a calibration by few positives says so, the scores do not") {
  const Predictions test = cases_from(0);
  Predictions validation = cases_from(1);
  size_t kept = 0;
  for (float& label : validation.labels)
    if (label == 1 && ++kept > 9) label = 0;
  const auto rules = choose_rules(validation, {}, {});
  const auto r = reliability_of(test, {}, &rules);
  REQUIRE(r.size() == 3);
  CHECK_FALSE(r[0].few_positives());
  CHECK((r[1].few_positives() && r[2].few_positives()));
}

TEST_CASE("without rules there are the scores alone, outside 0..1 nothing") {
  Predictions test = cases_from(0);
  CHECK(reliability_of(test, {}, nullptr).size() == 1);
  test.probabilities[0] = 1.5;
  CHECK(reliability_of(test, {}, nullptr).empty());
}
