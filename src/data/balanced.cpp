// Systematic sampling: the weights lie side by side on a line of length `sum`,
// in random order, and N marks of equal distance, from a random offset on, fall
// on them. So an epoch differs from the wanted frequencies by less than one
// draw a row.
#include "chexnet/data/balanced.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace chexnet {

std::vector<double> balanced_weights(const Manifest& manifest,
                                     const std::vector<uint32_t>& rows) {
  const size_t findings = manifest.finding_count();
  std::vector<size_t> positives(findings);
  size_t without = 0;
  for (const auto row : rows) {
    const float* labels = manifest.label_row(row);
    bool has_one = false;
    for (size_t k = 0; k < findings; ++k) {
      if (labels[k] != 1) continue;
      ++positives[k];
      has_one = true;
    }
    without += has_one ? 0 : 1;
  }
  std::vector<double> weights;
  weights.reserve(rows.size());
  for (const auto row : rows) {
    const float* labels = manifest.label_row(row);
    size_t least = rows.size() + 1;
    for (size_t k = 0; k < findings; ++k)
      if (labels[k] == 1) least = std::min(least, positives[k]);
    if (least > rows.size()) least = without;
    weights.push_back(std::sqrt(static_cast<double>(rows.size()) /
                                static_cast<double>(least)));
  }
  return weights;
}

std::vector<uint32_t> weighted_order(const std::vector<uint32_t>& rows,
                                     const std::vector<double>& weights,
                                     Random& random) {
  assert(rows.size() == weights.size() && !rows.empty());
  std::vector<size_t> line(rows.size());
  std::iota(line.begin(), line.end(), size_t{0});
  shuffle(line, random);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double apart = sum / static_cast<double>(rows.size());
  const double first = random.uniform() * apart;
  std::vector<uint32_t> drawn;
  drawn.reserve(rows.size());
  double end = 0;
  for (const size_t i : line) {
    end += weights[i];
    while (drawn.size() < rows.size() &&
           first + static_cast<double>(drawn.size()) * apart < end)
      drawn.push_back(rows[i]);
  }
  // The last mark may lie beyond `end` by rounding.
  while (drawn.size() < rows.size()) drawn.push_back(rows[line.back()]);
  shuffle(drawn, random);
  return drawn;
}

}  // namespace chexnet
