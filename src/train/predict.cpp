#include "chexnet/train/predict.hpp"

#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "chexnet/eval/logit.hpp"
#include "chexnet/train/score_images.hpp"

namespace chexnet {
namespace {

// Puts images together, in the split's order.
class Assembly {
 public:
  Assembly(const RunContext& run, const Split& split)
      : run_(run), split_(split) {
    result_.predictions.findings = run.dataset.manifest.findings;
  }

  void add(const ImageLogits& image) {
    const float* labels = add_labels(split_.rows[image.index], image.error);
    auto& probabilities = result_.predictions.probabilities;
    auto& spreads = result_.predictions.spreads;
    const bool is_ensemble = !run_.others.empty();
    if (image.logits.empty()) {
      probabilities.insert(probabilities.end(), findings(), kNaN);
      if (is_ensemble) spreads.insert(spreads.end(), findings(), kNaN);
      return;
    }
    spreads.insert(spreads.end(), image.spreads.begin(), image.spreads.end());
    const LossWeights& weights = run_.weights;
    for (size_t k = 0; k < findings(); ++k) {
      const double logit = image.logits[k];
      probabilities.push_back(probability_of(logit));
      if (std::isnan(labels[k])) continue;
      loss_ += entry_loss(logit, labels[k], weights.positive[k],
                          weights.negative[k], weights.shape);
      ++entries_;
    }
  }

  SplitPrediction finish() {
    result_.loss = entries_ > 0 ? loss_ / entries_ : kNaN;
    return std::move(result_);
  }

 private:
  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

  size_t findings() const { return run_.dataset.manifest.finding_count(); }
  const float* add_labels(size_t row, const std::string& reason) {
    const Manifest& manifest = run_.dataset.manifest;
    Predictions& p = result_.predictions;
    p.images.push_back(manifest.images[row]);
    if (manifest.knows_patients) p.patients.push_back(manifest.patients[row]);
    const float* labels = manifest.scored_row(row);
    p.labels.insert(p.labels.end(), labels, labels + findings());
    p.reasons.push_back(reason);
    return labels;
  }
  const RunContext& run_;
  const Split& split_;
  SplitPrediction result_;
  double loss_ = 0, entries_ = 0;
};

}  // namespace

std::optional<SplitPrediction> predict_split(
    const RunContext& run, const Split& split,
    const std::function<bool()>& stop) {
  assert(run.weights.positive.size() == run.dataset.manifest.finding_count());
  Assembly assembly(run, split);
  const auto take = [&](const ImageLogits& image) { assembly.add(image); };
  if (!score_images(run, split, {.stop = stop, .take = take}))
    return std::nullopt;
  return assembly.finish();
}

}  // namespace chexnet
