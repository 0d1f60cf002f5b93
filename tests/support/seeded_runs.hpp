// Predictions of networks that were trained by one recipe with several seeds.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

// Of 120 images of 60 patients, with two findings: a third of the images has
// them. A finding moves the logit by `shift`, and each seed of a recipe adds
// other noise to each image.
inline std::vector<Predictions> seeded_predictions(size_t seeds, double shift,
                                                   uint64_t recipe = 0) {
  std::vector<Predictions> networks(seeds);
  for (size_t s = 0; s < seeds; ++s) {
    Predictions& p = networks[s];
    p.findings = {"Mass", "Edema"};
    Random of_images(7, Purpose::kTest, 0), own(recipe, Purpose::kTest, s + 1);
    for (size_t i = 0; i < 120; ++i) {
      p.images.push_back("image-" + std::to_string(1000 + i));
      p.patients.push_back("patient-" + std::to_string(i / 2));
      for (size_t k = 0; k < 2; ++k) {
        const bool positive = (i + k) % 3 == 0;
        const double logit =
            of_images.normal() + 0.3 * own.normal() + (positive ? shift : 0);
        p.labels.push_back(positive ? 1.0f : 0.0f);
        p.probabilities.push_back(1 / (1 + std::exp(-logit)));
      }
    }
  }
  return networks;
}

}  // namespace chexnet
