#include "chexnet/eval/prevalence.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr double kFewestImages = 20;
constexpr double kFactor = 3, kStandardErrors = 4;

// Of two shares that are one in truth, by the share of both together.
bool differ(double a, double images_a, double b, double images_b) {
  const double both = (a * images_a + b * images_b) / (images_a + images_b);
  const double error =
      std::sqrt(both * (1 - both) * (1 / images_a + 1 / images_b));
  return std::max(a, b) > kFactor * std::min(a, b) &&
         std::abs(a - b) > kStandardErrors * error;
}

std::string percent(double share) { return fixed(100 * share, 1) + " %"; }

}  // namespace

std::string unlike_prevalence(const DecisionRules& rules,
                              const std::vector<LabeledImages>& scored) {
  std::string text;
  for (const auto& s : scored) {
    const FindingRules* rule = rules.find(s.finding);
    if (rule == nullptr) continue;
    const auto images = static_cast<double>(s.positives + s.negatives);
    const auto chosen_on =
        static_cast<double>(rule->positives + rule->negatives);
    if (std::min(images, chosen_on) < kFewestImages) continue;
    const double share = static_cast<double>(s.positives) / images;
    const double usual = static_cast<double>(rule->positives) / chosen_on;
    if (!differ(share, images, usual, chosen_on)) continue;
    text += (text.empty() ? "" : ", ") + s.finding + " " + percent(share) +
            " (" + percent(usual) + " of validation)";
  }
  return text;
}

}  // namespace chexnet
