#include "chexnet/eval/calibration_error.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "chexnet/eval/interval.hpp"
#include "labeled_probabilities.hpp"

namespace chexnet {
namespace {

// [bins + 1]. The fractions are rounded as numpy.linspace and numpy.percentile
// round them: a bit decides where a case on an edge belongs.
std::vector<double> edges_of(const std::vector<LabeledProbability>& cases,
                             Binning binning, size_t bins) {
  std::vector<double> sorted;
  for (const LabeledProbability& c : cases) sorted.push_back(c.probability);
  std::ranges::sort(sorted);
  std::vector<double> edges;
  for (size_t b = 0; b <= bins; ++b) {
    const double step = 1.0 / static_cast<double>(bins);
    const double share = b == bins ? 1 : static_cast<double>(b) * step;
    edges.push_back(binning == Binning::kEqualWidth
                        ? share
                        : quantile(sorted, share * 100 / 100));
  }
  return edges;
}

}  // namespace

std::optional<double> brier_score(std::span<const double> probabilities,
                                  std::span<const float> labels) {
  const auto cases = labeled_probabilities(probabilities, labels);
  if (cases.empty()) return std::nullopt;
  double sum = 0;
  for (const LabeledProbability& c : cases) {
    const double error = c.probability - (c.positive ? 1 : 0);
    sum += error * error;
  }
  return sum / static_cast<double>(cases.size());
}

std::vector<ReliabilityBin> reliability_bins(
    std::span<const double> probabilities, std::span<const float> labels,
    Binning binning, size_t bins) {
  assert(bins > 0);
  const auto cases = labeled_probabilities(probabilities, labels);
  if (cases.empty()) return {};
  const std::vector<double> edges = edges_of(cases, binning, bins);
  std::vector<ReliabilityBin> result(bins);
  for (size_t b = 0; b < bins; ++b) {
    result[b].low = edges[b];
    result[b].high = edges[b + 1];
  }
  for (const LabeledProbability& c : cases) {
    // The number of inner edges below the probability.
    const auto inner =
        std::lower_bound(edges.begin() + 1, edges.end() - 1, c.probability);
    ReliabilityBin& bin =
        result[static_cast<size_t>(inner - edges.begin()) - 1];
    ++bin.cases;
    bin.positives += c.positive ? 1 : 0;
    bin.mean_probability += c.probability;
  }
  for (auto& bin : result)
    if (bin.cases > 0) bin.mean_probability /= static_cast<double>(bin.cases);
  return result;
}

std::optional<double> calibration_error(std::span<const ReliabilityBin> bins) {
  double sum = 0, cases = 0;
  for (const auto& bin : bins) {
    sum += static_cast<double>(bin.cases) *
           std::abs(bin.mean_probability - bin.rate());
    cases += static_cast<double>(bin.cases);
  }
  if (cases == 0) return std::nullopt;
  return sum / cases;
}

}  // namespace chexnet
