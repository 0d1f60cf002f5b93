// Whether the images that are scored have a finding about as often as those
// that a network was trained on. A large difference often means a mistaken
// column.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace chexnet {

struct LabeledImages {
  std::string finding;
  size_t positives = 0, negatives = 0;
};

// "Hernia 12.0 % (1.2 % of training)" for each finding whose fraction of
// positives differs from that of `usual`, which `where` names, by more than a
// factor of three, and beyond chance (four standard errors); empty where none
// does. At least 20 labeled images.
std::string unlike_prevalence(const std::vector<LabeledImages>& usual,
                              const std::string& where,
                              const std::vector<LabeledImages>& scored);

}  // namespace chexnet
