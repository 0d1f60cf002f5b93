#include "chexnet/eval/prevalence.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr double kFewestImages = 20;
constexpr double kFactor = 3, kStandardErrors = 4;

// Of the difference of two fractions, if they are equal in truth: by the
// fraction of both together.
bool differ(double a, double images_a, double b, double images_b) {
  const double both = (a * images_a + b * images_b) / (images_a + images_b);
  const double error =
      std::sqrt(both * (1 - both) * (1 / images_a + 1 / images_b));
  return std::max(a, b) > kFactor * std::min(a, b) &&
         std::abs(a - b) > kStandardErrors * error;
}

double count_of(const LabeledImages& images) {
  return static_cast<double>(images.positives + images.negatives);
}

std::string percent(double share) { return fixed(100 * share, 1) + " %"; }

}  // namespace

std::string unlike_prevalence(const std::vector<LabeledImages>& usual,
                              const std::string& where,
                              const std::vector<LabeledImages>& scored) {
  std::string text;
  for (const auto& s : scored) {
    const auto known =
        std::ranges::find(usual, s.finding, &LabeledImages::finding);
    if (known == usual.end()) continue;
    const double images = count_of(s), usual_images = count_of(*known);
    if (std::min(images, usual_images) < kFewestImages) continue;
    const double share = static_cast<double>(s.positives) / images;
    const double before = static_cast<double>(known->positives) / usual_images;
    if (!differ(share, images, before, usual_images)) continue;
    text += (text.empty() ? "" : ", ") + s.finding + " " + percent(share) +
            " (" + percent(before) + " of " + where + ")";
  }
  return text;
}

}  // namespace chexnet
