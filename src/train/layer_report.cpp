#include "chexnet/train/layer_report.hpp"

#include <cassert>

namespace chexnet {

// The last row is what no layer accounts for: without it a slow part outside of
// them would not be seen.
std::vector<LayerRow> layer_rows(const LayerTimes& times, int steps,
                                 double seconds, const std::string& rest) {
  assert(steps > 0);
  std::vector<LayerRow> rows;
  double known = 0;
  for (int k = 0; k < kPassKinds; ++k) {
    const auto kind = static_cast<PassKind>(k);
    const auto& entry = times.of(kind);
    if (entry.passes == 0) continue;
    known += entry.seconds;
    rows.push_back({pass_name(kind), 1e3 * entry.seconds / steps,
                    1e-9 * entry.flops / entry.seconds,
                    1e-9 * entry.bytes / entry.seconds});
  }
  if (!rows.empty()) rows.push_back({rest, 1e3 * (seconds - known) / steps});
  return rows;
}

}  // namespace chexnet
