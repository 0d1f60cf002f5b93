#include "chexnet/eval/operating_table.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/eval/figures_csv.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

// One half of the invented cases, with both models as findings.
Predictions half(size_t first) {
  const SyntheticCases cases;
  Predictions p;
  p.findings = {"A", "B"};
  for (size_t i = first; i < 400; i += 2) {
    p.images.push_back(std::to_string(i));
    p.labels.insert(p.labels.end(), 2, cases.labels[i]);
    p.probabilities.push_back(cases.a[i]);
    p.probabilities.push_back(cases.b[i]);
  }
  return p;
}

std::vector<double> column(const Predictions& p, size_t k) {
  std::vector<double> scores;
  for (size_t i = k; i < p.probabilities.size(); i += 2)
    scores.push_back(p.probabilities[i]);
  return scores;
}

std::vector<float> labels(const Predictions& p) {
  std::vector<float> result;
  for (size_t i = 0; i < p.labels.size(); i += 2) result.push_back(p.labels[i]);
  return result;
}

}  // namespace

TEST_CASE("thresholds are chosen on validation and applied to test") {
  const Predictions test = half(0), validation = half(1);
  const auto rules = choose_rules(validation, {}, {.sensitivity = 0.8});
  const auto points = operating_points(test, {"B"}, &rules, 0.4);
  REQUIRE(points.size() == 4);
  CHECK((points[0].rule == "youden" && points[1].rule == "sensitivity 0.8" &&
         points[2].rule == "specificity 0.9" && points[3].rule == "threshold"));
  const auto scores = column(validation, 1);
  CHECK(points[0].threshold == youden_threshold(scores, labels(validation)));
  CHECK(points[1].threshold ==
        threshold_of_sensitivity(scores, labels(validation), 0.8));
  CHECK(points[2].threshold ==
        threshold_of_specificity(scores, labels(validation), 0.9));
  CHECK(points[3].threshold == 0.4);
  for (const auto& point : points) {
    CHECK(point.finding == "B");
    const auto here =
        confusion_at(*point.threshold, column(test, 1), labels(test));
    CHECK(point.confusion.true_positives == here.true_positives);
    CHECK(point.confusion.false_positives == here.false_positives);
  }
  CHECK(points[0].chosen_on_images == 200);
  CHECK((points[3].chosen_on_images == 0 && !points[3].few_positives()));
}

TEST_CASE("without validation there is the user's threshold alone") {
  const Predictions test = half(0);
  CHECK(operating_points(test, {}, nullptr, {}).empty());
  CHECK(operating_points(test, {}, nullptr, 0.5).size() == 2);
}

TEST_CASE("a point chosen on few positives says so") {
  const Predictions test = half(0);
  Predictions validation = half(1);
  for (auto& label : validation.labels) label = 0;
  auto rules = choose_rules(validation, {}, {});
  auto points = operating_points(test, {"A"}, &rules, {});
  CHECK_FALSE(points[0].threshold);
  CHECK(points[0].few_positives());
  CHECK_FALSE(points[0].confusion.sensitivity().value());
  validation.labels[0] = 1;
  rules = choose_rules(validation, {}, {});
  points = operating_points(test, {"A"}, &rules, {});
  CHECK((points[0].threshold && points[0].few_positives()));
}

TEST_CASE("thresholds are not chosen on the images that are scored") {
  const Predictions test = half(0);
  Predictions validation = half(1);
  validation.images[3] = test.images[5];
  CHECK(error_of<DataError>([&] {
          refuse_common_images(test, validation);
        }).find("1 of the scored images are also in") != std::string::npos);
  refuse_common_images(test, half(1));
  validation = half(1);
  validation.findings = {"A", "C"};
  const auto rules = choose_rules(validation, {}, {});
  CHECK(error_of<DataError>([&] {
          operating_points(test, {}, &rules, {});
        }).find("B is not in the table") != std::string::npos);
}

TEST_CASE("a table of figures has one figure on a line") {
  const Predictions test = half(0), validation = half(1);
  const auto rules = choose_rules(validation, {}, {});
  const auto points = operating_points(test, {"A"}, &rules, {});
  const Figures figures = figures_of(test, {"A"}, {.resamples = 64});
  const std::string text =
      figures_csv({.figures = figures, .points = points, .prevalence = 0.01});
  const auto lines = std::ranges::count(text, '\n');
  CHECK(lines == 1 + 6 + 2 + 3 * 7);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    CHECK(std::count(&text[at], &text[end], ',') == 10);
    at = end + 1;
  }
  CHECK(text.find("\nA,auroc,,,0.") != std::string::npos);
  CHECK(text.find("\nA,ppv_at_prevalence,youden,0.") != std::string::npos);
  CHECK(text.find("\n,mean_auroc,,,0.") != std::string::npos);
}
