// Scores of a split, image by image, from which `evaluate` computes figures,
// and their CSV format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/data/manifest.hpp"

namespace chexnet {

// The reason of an image whose table gives none.
inline constexpr const char* kNotScored = "not scored";

struct Predictions {
  ScoredBy by = ScoredBy::kImage;     // what a row is of
  std::vector<std::string> findings;  // [K]
  std::vector<std::string> images;    // [N]
  std::vector<float> labels;          // [N,K], NaN = not labeled
  std::vector<double> probabilities;  // [N,K], NaN = not scored
  // [N,K]: standard deviation of the probabilities of an ensemble's members,
  // NaN = of fewer than two; or none at all.
  std::vector<double> spreads;
  // [N], or none at all where they are not known. No table gets them.
  std::vector<std::string> patients;
  // [N]: why an image was not scored, else empty; or none at all.
  std::vector<std::string> reasons;
  bool scored(size_t image) const {
    return reasons.empty() || reasons[image].empty();
  }
};

struct Scores {
  ScoredBy by = ScoredBy::kImage;  // what counts as an image here
  size_t images = 0;   // that were scored: all figures are of them alone
  size_t damaged = 0;  // that were not, for a reason
  // Nor these, which a table leaves blank without a reason.
  size_t not_scored = 0;
  std::vector<std::string> findings;
  // [K]; empty where a class has no member
  std::vector<std::optional<double>> auroc;
  std::vector<size_t> positives;  // [K]
  // Over the findings of mean_columns(). It also chooses a checkpoint
  // (checkpoint.best: auroc).
  std::optional<double> mean_auroc;
  // Of "some disease is present" by the mean logit of the diseases (neither "No
  // Finding" nor "Support Devices"). An image without a 1 and with a blank says
  // nothing. Empty also when a score is no probability.
  std::optional<double> any_finding_auroc_mean_logit;
  bool probabilities = true;  // all scores are in 0..1
  // Mean binary cross-entropy, where it was computed.
  std::optional<double> loss;
};
// "40 images", "25 studies", or "38 of 40 images, 1 damaged, 1 not scored".
std::string images_text(const Scores& scores);
// `findings`: those that are scored; empty = all.
Scores score(const Predictions& predictions,
             const std::vector<std::string>& findings = {});
// eval.findings as the network names them (findings.hpp); all that it knows
// when empty. ConfigError: an unknown name, a name twice.
std::vector<std::string> scored_findings(const std::vector<std::string>& asked,
                                         const std::vector<std::string>& known);

// predictions_<split>.csv:
// image,label:<finding>…,prob:<finding>…[,spread:<finding>…],reason[,by];
// shortest text that reads back equal. The probabilities of an image that was
// not scored are blank, and `reason` says why. `by` is there where rows are of
// studies or patients, named by their first images.
std::string predictions_csv(const Predictions& predictions);

// Our format, or any other table: an image column ("image", "Image Index" or
// "Path", else the first) and one column per finding ("prob:<finding>" or
// "<finding>"). Labels come from `manifest` when it is given, else from
// "label:<finding>", and patients from `manifest` alone; a warning counts
// labels of the table that differ from those of the manifest. A table with a
// column "by" has the labels itself, as no row of a manifest has a study's. A
// row whose probabilities are all blank was not scored. Findings of the
// manifest that have no column are left out, names meet as in findings.hpp.
// DataError: unknown image, no finding in common, two columns of images, of
// reasons or of one finding, a value that is no number, no image with a score.
Predictions read_predictions(const std::string& path, const Manifest* manifest);
// Whether the table has labels, "label:<finding>".
bool has_labels(const std::string& path);

}  // namespace chexnet
