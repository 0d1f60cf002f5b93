#include "chexnet/train/layer_report.hpp"

#include <cassert>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/thread_pool.hpp"

namespace chexnet {
namespace {

// The last row is what no layer accounts for: without it a slow part outside of
// them would not be seen.
std::vector<LayerRow> rows_of(const LayerTimes& times, int steps,
                              double seconds, const std::string& rest) {
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

}  // namespace

LayerReport timed_layers(Network& network, const Device& device, int steps,
                         const std::string& rest,
                         const std::function<void()>& compute) {
  assert(steps > 0);
  LayerTimes times;
  network.set_layer_times(&times);
  const double start = now_s();
  for (int i = 0; i < steps; ++i) compute();
  const double seconds = now_s() - start;
  network.set_layer_times(nullptr);

  LayerReport report;
  report.rows = rows_of(times, steps, seconds, rest);
  if (report.rows.empty()) return report;
  ThreadPool thread_pool(device.threads);
  report.ceilings =
      measure_ceilings(arithmetic_of(network.options().precision), thread_pool);
  return report;
}

}  // namespace chexnet
