#include "chexnet/eval/curves.hpp"

#include <cmath>
#include <random>

#include "eval/auroc.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

struct Cases {
  std::vector<double> scores;
  std::vector<float> labels;
};

// Scores with ties, some without a label.
Cases synthetic(size_t count) {
  std::mt19937 random(3);
  Cases cases;
  for (size_t i = 0; i < count; ++i) {
    const bool positive = random() % 5 == 0;
    cases.scores.push_back(static_cast<double>(random() % 40 + 8 * positive) /
                           64);
    cases.labels.push_back(random() % 11 == 0 ? std::nanf("")
                                              : static_cast<float>(positive));
  }
  return cases;
}

double trapezoids(const CurvePoints& points) {
  double area = 0;
  for (size_t i = 1; i < points.size(); ++i)
    area += (points[i].first - points[i - 1].first) *
            (points[i].second + points[i - 1].second) / 2;
  return area;
}

}  // namespace

TEST_CASE("the areas under the curves are the figures they belong to") {
  const Cases cases = synthetic(500);
  const auto ranked = rank_cases(cases.scores, cases.labels);
  REQUIRE(ranked);
  const CurvePoints roc = roc_curve(*ranked);
  CHECK(roc.front() == std::pair(0.0, 0.0));
  CHECK(roc.back() == std::pair(1.0, 1.0));
  const auto area = auroc(cases.scores, cases.labels);
  REQUIRE(area);
  CHECK(trapezoids(roc) == Approx(*area).epsilon(1e-12));
  const auto precision = average_precision(*ranked);
  REQUIRE(precision);
  CHECK(trapezoids(precision_recall_curve(*ranked)) ==
        Approx(*precision).epsilon(1e-12));
}

TEST_CASE("a curve of one class has no points") {
  const std::vector<double> scores = {0.1, 0.2};
  for (const float label : {0.0f, 1.0f}) {
    const std::vector<float> labels(2, label);
    const auto ranked = rank_cases(scores, labels);
    REQUIRE(ranked);
    CHECK(roc_curve(*ranked).empty());
    CHECK(precision_recall_curve(*ranked).empty());
  }
}

TEST_CASE("a thinned curve keeps its ends and stays within a cell") {
  const Cases cases = synthetic(5000);
  const CurvePoints whole = roc_curve(*rank_cases(cases.scores, cases.labels));
  CurvePoints fine;
  for (int i = 0; i <= 10000; ++i) fine.emplace_back(i / 1e4, i / 1e4);
  const CurvePoints few = thinned(fine, 0.01);
  CHECK(few.size() < 110);
  CHECK(few.front() == fine.front());
  CHECK(few.back() == fine.back());
  CHECK(std::abs(trapezoids(thinned(whole, 0.01)) - trapezoids(whole)) < 0.01);
  CHECK(thinned({}, 0.1).empty());
}
