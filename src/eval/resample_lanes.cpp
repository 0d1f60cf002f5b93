// AUROC = won / (positives * negatives). From the highest score down a step's
// positives lose against the negatives above them, and half against the tied:
//   2 lost = sum over steps of positives * (2 above + tied),
// where each count is the sum of the draws of its cases' patients. Most cases
// are negatives between two steps, for which the work is one addition of bytes.
#include "resample_lanes.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace chexnet {
namespace {

// 257 * 255 = 65535: so many counts of a byte fit a sum of 16 bits.
constexpr size_t kBlock = 257;

struct Sums {
  alignas(64) uint32_t lane[kLanes] = {};
};

void add_counts(std::span<const uint32_t> patients, const DrawCounts& counts,
                Sums& sums) {
  for (size_t first = 0; first < patients.size(); first += kBlock) {
    alignas(64) uint16_t block[kLanes] = {};
    const size_t last = std::min(first + kBlock, patients.size());
    for (size_t i = first; i < last; ++i) {
      const uint8_t* count = &counts[patients[i] * kLanes];
      for (size_t l = 0; l < kLanes; ++l)
        block[l] = static_cast<uint16_t>(block[l] + count[l]);
    }
    for (size_t l = 0; l < kLanes; ++l) sums.lane[l] += block[l];
  }
}

// What a column has summed up from the highest score to the present step.
struct Totals {
  Sums negatives, positives;
  alignas(64) uint64_t twice_lost[kLanes] = {};
  alignas(64) double precision[kLanes] = {};  // times positives

  void add_step(const Sums& tied, const Sums& here) {
    for (size_t l = 0; l < kLanes; ++l) {
      const uint32_t twice = 2 * negatives.lane[l] + tied.lane[l];
      twice_lost[l] += uint64_t{here.lane[l]} * twice;
      negatives.lane[l] += tied.lane[l];
      positives.lane[l] += here.lane[l];
    }
    for (size_t l = 0; l < kLanes; ++l) {
      // Nobody drawn so far: 0 / 1. Counts are below 2^31 (bootstrap.hpp).
      const auto found = static_cast<int32_t>(positives.lane[l]);
      const auto all = static_cast<int32_t>(
          std::max(positives.lane[l] + negatives.lane[l], 1u));
      precision[l] += static_cast<double>(static_cast<int32_t>(here.lane[l])) *
                      (static_cast<double>(found) / static_cast<double>(all));
    }
  }

  LaneFigures figures() const {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    LaneFigures figures{};
    for (size_t l = 0; l < kLanes; ++l) {
      const uint64_t p = positives.lane[l], n = negatives.lane[l];
      const bool defined = p > 0 && n > 0;
      const double pairs =
          2.0 * static_cast<double>(p) * static_cast<double>(n);
      figures.auroc[l] =
          defined ? static_cast<double>(2 * p * n - twice_lost[l]) / pairs
                  : kNaN;
      figures.average_precision[l] =
          defined ? precision[l] / static_cast<double>(p) : kNaN;
    }
    return figures;
  }
};

}  // namespace

LaneFigures figures_of_lanes(const RankedCases& column,
                             const DrawCounts& counts) {
  const std::span<const uint32_t> patients = column.cases;
  Totals totals;
  size_t done = 0;
  for (const auto& step : column.steps) {
    Sums tied, here;
    add_counts(patients.subspan(done, step.above_end - done), counts,
               totals.negatives);
    add_counts(patients.subspan(step.above_end, step.tied_end - step.above_end),
               counts, tied);
    add_counts(
        patients.subspan(step.tied_end, step.positives_end - step.tied_end),
        counts, here);
    totals.add_step(tied, here);
    done = step.positives_end;
  }
  add_counts(patients.subspan(done), counts, totals.negatives);
  return totals.figures();
}

}  // namespace chexnet
