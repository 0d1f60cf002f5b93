// Counted once for a split, at the start: which findings have both classes, and
// so a score.
#include "chexnet/data/label_counts.hpp"

#include <algorithm>

#include "chexnet/data/findings.hpp"

namespace chexnet {

LabelCounts count_labels(const Manifest& manifest,
                         const std::vector<uint32_t>& rows, Labels which) {
  const size_t findings = manifest.finding_count();
  LabelCounts counts{std::vector<size_t>(findings),
                     std::vector<size_t>(findings)};
  for (const auto row : rows) {
    const float* labels = which == Labels::kTraining ? manifest.label_row(row)
                                                     : manifest.scored_row(row);
    for (size_t k = 0; k < findings; ++k) {
      if (labels[k] == 1) ++counts.positives[k];
      if (labels[k] == 0) ++counts.negatives[k];
    }
  }
  return counts;
}

std::string one_sided_text(const Manifest& manifest, const LabelCounts& counts,
                           const std::vector<std::string>& findings) {
  std::vector<std::string> without_positive, without_negative;
  for (size_t k = 0; k < manifest.finding_count(); ++k) {
    const std::string& name = manifest.findings[k];
    if (std::ranges::find(findings, name) == findings.end()) continue;
    if (counts.positives[k] == 0) without_positive.push_back(name);
    if (counts.negatives[k] == 0) without_negative.push_back(name);
  }
  std::string text;
  if (!without_positive.empty())
    text = "no positive of " + listed(without_positive);
  if (!without_negative.empty())
    text += (text.empty() ? "" : "; ") +
            ("no negative of " + listed(without_negative));
  return text;
}

}  // namespace chexnet
