// How often a table says "uncertain". A manifest holds what such an entry
// counts as, so the tables are read once more under the one policy that leaves
// it a value of its own.
#include "chexnet/data/audit.hpp"
#include "labels.hpp"

namespace chexnet {

void count_uncertain(const DataConfig& config, const Splits& splits,
                     Audit& audit) {
  DataConfig marking = config;
  marking.uncertain = TrainingPolicy::kSmooth;
  marking.uncertain_by_finding.clear();
  const Manifest marked = read_manifest(marking);
  for (auto& counts : audit.splits) {
    counts.uncertain.assign(marked.finding_count(), 0);
    for (const auto row : splits.named(counts.name).rows)
      for (size_t k = 0; k < marked.finding_count(); ++k)
        if (marked.label_row(row)[k] == kSmoothLabel) ++counts.uncertain[k];
  }
}

}  // namespace chexnet
