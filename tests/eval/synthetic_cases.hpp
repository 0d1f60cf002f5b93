// 400 cases with ties, two models and patients of up to four images, from
// integers alone, so that scripts/reference/statistics_reference.py has the
// same. Its `figures` prints the values that the tests hold.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

struct SyntheticCases {
  std::vector<float> labels;
  std::vector<double> a, b;  // scores of two models
  std::vector<std::string> patients;

  SyntheticCases() {
    for (int i = 0; i < 400; ++i) {
      const int label = (i * 7 + i / 13) % 10 < 3 ? 1 : 0;
      labels.push_back(static_cast<float>(label));
      a.push_back(((i * 37) % 101 + 40 * label) / 141.0);
      b.push_back(((i * 53 + i / 7) % 89 + 25 * label) / 114.0);
      patients.push_back("p" + std::to_string(i * i % 367 / 3));
    }
  }
};

}  // namespace chexnet
