#include "chexnet/eval/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "chexnet/eval/logit.hpp"
#include "labeled_probabilities.hpp"

namespace chexnet {
namespace {

// What a positive and a negative count as in a fit.
struct Targets {
  double positive, negative;
};

struct CasesToFit {
  std::vector<LabeledProbability> cases;  // empty where nothing can be fitted
  Targets targets;
};

CasesToFit cases_to_fit(std::span<const double> probabilities,
                        std::span<const float> labels) {
  auto cases = labeled_probabilities(probabilities, labels);
  const auto positives =
      std::ranges::count(cases, true, &LabeledProbability::positive);
  const auto negatives = std::ssize(cases) - positives;
  if (positives == 0 || negatives == 0) return {};
  return {
      std::move(cases),
      {static_cast<double>(positives + 1) / static_cast<double>(positives + 2),
       1 / static_cast<double>(negatives + 2)}};
}

double logit(double probability) {
  constexpr double kLeast = 1e-15;
  return logit_of(std::clamp(probability, kLeast, 1 - kLeast));
}

// Cases of one probability, or of several that were pooled.
struct Block {
  double first, last;  // probabilities
  uint64_t positives, cases;
};

// In integers, so that equal rates are seen as equal.
bool rate_at_least(const Block& a, const Block& b) {
  return a.positives * b.cases >= b.positives * a.cases;
}

}  // namespace

double TemperatureScaling::operator()(double probability) const {
  return probability_of(logit(probability) / temperature);
}

// With slope = 1 / temperature the cross-entropy is convex, and its derivative
// sum (probability_of(slope * logit) - target) * logit rises: halving finds its
// zero.
std::optional<TemperatureScaling> fit_temperature(
    std::span<const double> probabilities, std::span<const float> labels) {
  const auto [cases, targets] = cases_to_fit(probabilities, labels);
  if (cases.empty()) return std::nullopt;
  std::vector<double> logits;
  for (const LabeledProbability& c : cases)
    logits.push_back(logit(c.probability));
  const auto too_steep = [&, &cases = cases, &targets = targets](double slope) {
    double derivative = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
      const double target =
          cases[i].positive ? targets.positive : targets.negative;
      derivative += (probability_of(slope * logits[i]) - target) * logits[i];
    }
    return derivative > 0;
  };
  double low = 1 / kMostTemperature, high = 1 / kLeastTemperature;
  if (too_steep(low)) return TemperatureScaling{kMostTemperature};
  if (!too_steep(high)) return TemperatureScaling{kLeastTemperature};
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;  // neighbors
    (too_steep(middle) ? high : low) = middle;
  }
  return TemperatureScaling{1 / low};
}

double IsotonicMap::operator()(double probability) const {
  const auto above = std::ranges::lower_bound(from, probability);
  if (above == from.begin()) return to.front();
  if (above == from.end()) return to.back();
  const auto i = static_cast<size_t>(above - from.begin());
  const double slope = (to[i] - to[i - 1]) / (from[i] - from[i - 1]);
  return to[i - 1] + slope * (probability - from[i - 1]);
}

std::optional<IsotonicMap> fit_isotonic(std::span<const double> probabilities,
                                        std::span<const float> labels) {
  auto [cases, targets] = cases_to_fit(probabilities, labels);
  if (cases.empty()) return std::nullopt;
  std::ranges::sort(cases, {}, &LabeledProbability::probability);
  std::vector<Block> blocks;
  for (size_t first = 0; first < cases.size();) {
    Block block{cases[first].probability, cases[first].probability, 0, 0};
    for (; first < cases.size() && cases[first].probability == block.last;
         ++first) {
      ++block.cases;
      block.positives += cases[first].positive ? 1 : 0;
    }
    while (!blocks.empty() && rate_at_least(blocks.back(), block)) {
      block.first = blocks.back().first;
      block.positives += blocks.back().positives;
      block.cases += blocks.back().cases;
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  IsotonicMap map;
  for (const Block& block : blocks) {
    // Targets are the labels scaled and shifted, so they pool alike.
    const double positives =
        static_cast<double>(block.positives) / static_cast<double>(block.cases);
    const double rate =
        targets.negative + positives * (targets.positive - targets.negative);
    map.from.push_back(block.first);
    map.to.push_back(rate);
    if (block.last == block.first) continue;
    map.from.push_back(block.last);
    map.to.push_back(rate);
  }
  return map;
}

}  // namespace chexnet
