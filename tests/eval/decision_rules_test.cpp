#include "chexnet/eval/decision_rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

// Invented cases, those of "Never" without a positive; rows in the given order.
Predictions synthetic(bool backwards = false) {
  const SyntheticCases cases;
  std::vector<size_t> order(400);
  std::iota(order.begin(), order.end(), size_t{0});
  if (backwards) std::ranges::reverse(order);
  Predictions p;
  p.findings = {"Mass", "Never"};
  for (const auto i : order) {
    p.images.push_back(std::to_string(i));
    p.labels.insert(p.labels.end(), {cases.labels[i], 0});
    p.probabilities.insert(p.probabilities.end(), {cases.a[i], cases.b[i]});
  }
  return p;
}

}  // namespace

TEST_CASE("rules are chosen for each finding, none where it has no positive") {
  const SyntheticCases cases;
  const auto rules = choose_rules(synthetic(), {}, {.specificity = 0.75});
  CHECK(rules.images == 400);
  REQUIRE(rules.findings.size() == 2);
  const FindingRules& mass = rules.findings[0];
  const std::vector<float> labels(cases.labels.begin(),
                                  cases.labels.begin() + 400);
  const std::vector<double> scores(cases.a.begin(), cases.a.begin() + 400);
  CHECK(mass.threshold("youden") == youden_threshold(scores, labels));
  CHECK(mass.threshold("specificity") ==
        threshold_of_specificity(scores, labels, 0.75));
  CHECK(mass.points.back().rule == "specificity 0.75");
  REQUIRE(mass.temperature);
  const double expected = (*fit_temperature(scores, labels))(scores[7]);
  CHECK(std::abs(*calibrated(mass, Calibration::kTemperature, scores[7]) -
                 expected) < 1e-12);
  CHECK(calibrated(mass, Calibration::kIsotonic, scores[7]) ==
        (*fit_isotonic(scores, labels))(scores[7]));

  const FindingRules& never = rules.findings[1];
  CHECK((never.positives == 0 && never.few_positives()));
  CHECK_FALSE(never.threshold("youden"));
  CHECK_FALSE(calibrated(never, Calibration::kTemperature, 0.5));
  CHECK(rules.find("mass") == &mass);
  CHECK(rules.find("Hernia") == nullptr);
}

TEST_CASE("the order of a table's rows changes no bit of the rules") {
  CHECK(decision_rules_json(choose_rules(synthetic(false), {}, {})) ==
        decision_rules_json(choose_rules(synthetic(true), {}, {})));
}

TEST_CASE("scores that are no probabilities have thresholds alone") {
  Predictions p = synthetic();
  for (double& score : p.probabilities) score *= 3;
  const auto rules = choose_rules(p, {}, {});
  CHECK(rules.findings[0].threshold("youden"));
  CHECK_FALSE(rules.findings[0].temperature);
  CHECK_FALSE(rules.findings[0].isotonic);
}

TEST_CASE("rules read back as they were written") {
  DecisionRules rules = choose_rules(synthetic(), {}, {});
  rules.chosen_on = "images";
  rules.model_sha256 = "model";
  rules.manifest_sha256 = "table";
  const std::string text = decision_rules_json(rules);
  const DecisionRules read = parse_decision_rules(text, "here");
  CHECK(decision_rules_json(read) == text);
  CHECK((read.chosen_on == "images" && read.model_sha256 == "model" &&
         read.manifest_sha256 == "table" && read.images == 400));
  CHECK(read.findings[0].threshold("sensitivity") ==
        rules.findings[0].threshold("sensitivity"));
  CHECK(calibrated(read.findings[0], Calibration::kIsotonic, 0.3) ==
        calibrated(rules.findings[0], Calibration::kIsotonic, 0.3));
}

TEST_CASE("rules that cannot be applied are refused") {
  const auto refusal = [](const std::string& text) {
    return error_of<CheckpointError>([&] { parse_decision_rules(text, "m"); });
  };
  const auto with = [](const std::string& calibration) {
    return R"({"model_sha256":"","scored_with":"","chosen_on":{"images":1,"sha256":"",)"
           R"("manifest_sha256":""},"findings":[{"finding":"A",)"
           R"("positives":1,"negatives":1,"thresholds":[])" +
           calibration + "}]}";
  };
  CHECK(refusal(with("")).empty());
  CHECK(refusal("{").find("[decision rules] m: ") == 0);
  CHECK(refusal("{}").find("model_sha256") != std::string::npos);
  for (const char* calibration :
       {R"(,"temperature":0)", R"(,"isotonic":{"from":[],"to":[]})",
        R"(,"isotonic":{"from":[0.1,0.2],"to":[0.1]})",
        R"(,"isotonic":{"from":[0.2,0.2],"to":[0.1,0.3]})",
        R"(,"isotonic":{"from":[0.1,0.2],"to":[0.3,0.1]})"}) {
    INFO(calibration);
    CHECK(refusal(with(calibration)).find("calibration of A") !=
          std::string::npos);
  }
}
