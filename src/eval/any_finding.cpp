#include "any_finding.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "chexnet/data/findings.hpp"

namespace chexnet {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

double log_odds(double p) {
  constexpr double kTiny = 1e-300;
  return std::log(std::max(p, kTiny)) - std::log(std::max(1 - p, kTiny));
}

// What an image shows about "some disease": 1, 0, or NaN when it is not known.
float any_disease(const float* labels, const std::vector<size_t>& diseases) {
  bool unknown = diseases.empty();
  for (const auto k : diseases) {
    if (labels[k] > 0.5f) return 1;
    unknown = unknown || std::isnan(labels[k]);
  }
  return unknown ? kUnknown : 0.0f;
}

}  // namespace

AnyFinding any_finding(const Predictions& predictions,
                       const std::vector<size_t>& columns) {
  std::vector<size_t> diseases;
  for (const auto k : columns)
    if (is_disease(predictions.findings[k])) diseases.push_back(k);
  const size_t findings = predictions.findings.size();
  const size_t images = predictions.images.size();
  AnyFinding any{std::vector<double>(images), std::vector<float>(images)};
  for (size_t i = 0; i < images; ++i) {
    double total = 0;
    for (const auto k : diseases)
      total += log_odds(predictions.probabilities[i * findings + k]);
    any.scores[i] = total / static_cast<double>(diseases.size());
    any.labels[i] =
        std::isnan(any.scores[i])
            ? kUnknown  // not predicted
            : any_disease(&predictions.labels[i * findings], diseases);
  }
  return any;
}

}  // namespace chexnet
