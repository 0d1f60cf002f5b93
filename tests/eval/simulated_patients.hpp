// Patients whose images resemble each other, with an AUROC that is known.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/eval/interval.hpp"

namespace chexnet {

// Each patient has the finding or not, and 1 to 5 images. A score is the sum of
// what the patient adds and of what the image adds, both normal with variance
// 1, and kShift where there is the finding.
struct SimulatedPatients {
  static constexpr double kShift = 1.5;
  // Of two images of different patients. No patient has both labels.
  static double true_auroc() {
    const double z = kShift / 2;  // the difference has variance 4
    return std::erfc(-z / std::numbers::sqrt2) / 2;
  }

  std::vector<double> scores;
  std::vector<float> labels;
  std::vector<std::string> patients;

  SimulatedPatients(int count, uint64_t seed) {
    Random random(seed, Purpose::kTest, 0);
    for (int p = 0; p < count; ++p) {
      const bool positive = random.chance(0.3);
      const double of_patient = random.normal() + (positive ? kShift : 0);
      const auto images = 1 + random.below(5);
      for (uint32_t i = 0; i < images; ++i) {
        scores.push_back(of_patient + random.normal());
        labels.push_back(positive ? 1.0f : 0.0f);
        patients.push_back(std::to_string(p));
      }
    }
  }
};

// How many of a hundred intervals hold the true value.
inline double coverage_percent(const std::vector<Interval>& intervals) {
  const double truth = SimulatedPatients::true_auroc();
  double held = 0;
  for (const auto& interval : intervals)
    if (interval.low <= truth && truth <= interval.high) ++held;
  return 100 * held / static_cast<double>(intervals.size());
}

}  // namespace chexnet
