#include "chexnet/eval/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "chexnet/eval/scored_columns.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

// Two models as two findings of the same labels, and "No Finding".
Predictions synthetic_figures() {
  const SyntheticCases cases;
  Predictions p;
  p.findings = {"A", "No Finding", "B"};
  p.patients = cases.patients;
  for (size_t i = 0; i < 400; ++i) {
    p.images.push_back(std::to_string(i));
    const float label = cases.labels[i];
    for (const float l : {label, 1 - label, label}) p.labels.push_back(l);
    for (const double s : {cases.a[i], 1 - cases.a[i], cases.b[i]})
      p.probabilities.push_back(s);
  }
  return p;
}

Predictions turned(const Predictions& p) {
  Predictions q = p;
  std::ranges::reverse(q.images);
  std::ranges::reverse(q.patients);
  const size_t width = p.findings.size();
  for (size_t i = 0; i < p.images.size(); ++i)
    for (size_t k = 0; k < width; ++k) {
      const size_t to = (p.images.size() - 1 - i) * width + k;
      q.labels[to] = p.labels[i * width + k];
      q.probabilities[to] = p.probabilities[i * width + k];
    }
  return q;
}

const BootstrapOptions kFew{.resamples = 300, .seed = 2, .threads = 2};

}  // namespace

TEST_CASE("figures of a prediction are those of its columns") {
  const Predictions p = synthetic_figures();
  const Scores s = score(p);
  const Figures f = figures_of(p, {}, kFew);
  REQUIRE(f.findings.size() == 3);
  for (size_t k = 0; k < 3; ++k) {
    CHECK(f.findings[k].finding == s.findings[k]);
    CHECK(f.findings[k].auroc.value == s.auroc[k]);
    CHECK(f.findings[k].positives == s.positives[k]);
    CHECK(f.findings[k].auroc.interval->interval.low < *s.auroc[k]);
    CHECK(f.findings[k].delong);
  }
  CHECK(f.mean_auroc.value == s.mean_auroc);
  CHECK(f.mean_auroc.interval->interval.low < *s.mean_auroc);
  CHECK(f.mean_auroc.interval->interval.high > *s.mean_auroc);
  CHECK(f.any_finding.auroc.value == s.any_finding_auroc_mean_logit);
  CHECK(f.any_finding.auroc.interval);
  CHECK_FALSE(f.any_finding.brier);
  CHECK(*f.findings[0].average_precision.value == Approx(0.7141005539629262));
  CHECK(*f.findings[0].brier == Approx(0.1740532417886424));
  CHECK(*f.findings[0].error_in_equal_widths == Approx(0.1508333333333333));
  CHECK(*f.findings[0].error_in_equal_masses == Approx(0.1670035460992908));
  CHECK((f.patients > 50 && f.patients < 200));
  CHECK((f.resamples == 300 && f.seed == 2));
}

TEST_CASE("one finding of few patients takes no interval from the mean") {
  Predictions p = synthetic_figures();
  const MeanFigure before = figures_of(p, {}, kFew).mean_auroc;
  CHECK((before.findings == 2 && !before.rough));
  // A third finding, of three positives.
  p.findings.emplace_back("Rare");
  std::vector<float> labels;
  std::vector<double> scores;
  for (size_t i = 0; i < 400; ++i) {
    for (size_t k = 0; k < 3; ++k) {
      labels.push_back(p.labels[3 * i + k]);
      scores.push_back(p.probabilities[3 * i + k]);
    }
    labels.push_back(i < 3 ? 1.0f : 0.0f);
    scores.push_back(0.5);
  }
  p.labels = labels;
  p.probabilities = scores;
  const Figures with_rare = figures_of(p, {}, kFew);
  CHECK(with_rare.findings[3].auroc.value == 0.5);
  CHECK(with_rare.mean_auroc.value == before.value);
  CHECK(with_rare.mean_auroc.interval->interval == before.interval->interval);
  CHECK(with_rare.mean_auroc.findings == 2);
  // Alone it has a mean, which is rough.
  const MeanFigure alone = figures_of(p, {"Rare"}, kFew).mean_auroc;
  CHECK((alone.value == 0.5 && alone.rough && !alone.interval));
}

TEST_CASE("the order of images changes no interval") {
  const Predictions p = synthetic_figures();
  const Figures a = figures_of(p, {}, kFew),
                b = figures_of(turned(p), {}, kFew);
  for (size_t k = 0; k < 3; ++k)
    CHECK(a.findings[k].auroc.interval->interval ==
          b.findings[k].auroc.interval->interval);
}

TEST_CASE("without patients each image is one, and the number is not known") {
  Predictions p = synthetic_figures();
  p.patients.clear();
  const Figures f = figures_of(p, {}, kFew);
  CHECK(f.patients == 0);
  CHECK(f.findings[0].auroc.interval);
}

TEST_CASE("an image that was not scored is in no figure") {
  Predictions p = synthetic_figures();
  const Figures before = figures_of(p, {"A"}, kFew);
  p.images.emplace_back("damaged");
  p.patients.emplace_back("new");
  p.labels.insert(p.labels.end(), 3, 1.0f);
  p.probabilities.insert(p.probabilities.end(), 3, NAN);
  p.reasons.resize(400);
  p.reasons.emplace_back("damaged PNG");
  const Figures after = figures_of(p, {"A"}, kFew);
  CHECK(after.patients == before.patients);
  CHECK(after.findings[0].positives == before.findings[0].positives);
  CHECK(after.findings[0].auroc.interval->interval ==
        before.findings[0].auroc.interval->interval);
}

TEST_CASE("scores that are no probabilities have ranks alone") {
  Predictions p = synthetic_figures();
  p.probabilities[0] = 1.5;
  const Figures f = figures_of(p, {}, kFew);
  REQUIRE(f.findings.size() == 3);
  CHECK(f.findings[0].auroc.interval);
  CHECK_FALSE(f.findings[0].brier);
  CHECK_FALSE(f.findings[0].error_in_equal_masses);
  CHECK_FALSE(f.any_finding.auroc.value);
}

TEST_CASE("patients of a table of predictions come from the manifest") {
  const ScratchFolder folder;
  Manifest manifest;
  manifest.findings = {"A"};
  manifest.images = {"x", "y"};
  manifest.patients = {"p", "p"};
  manifest.labels = {1, 0};
  manifest.rows = {{"x", 0}, {"y", 1}};
  const std::string table = folder.write("p.csv", "image,A\ny,0.5\nx,0.6\n");
  const auto p = read_predictions(table, &manifest);
  CHECK(p.patients == std::vector<std::string>{"p", "p"});
  CHECK(patients_of(p, {0, 1}).count == 1);
  manifest.knows_patients = false;
  CHECK(read_predictions(table, &manifest).patients.empty());
  CHECK(predictions_csv(p).find("p,") == std::string::npos);
}
