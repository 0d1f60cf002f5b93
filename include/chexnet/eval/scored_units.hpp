// Scores of studies or of patients, made of those of their images (eval.by).
// CheXpert's task takes the highest probability of a study's views (Irvin et
// al., AAAI 2019, section 4).
#pragma once

#include <string>

#include "chexnet/config/config.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

// ConfigError: by study or patient, and the table does not know them.
void check_scored_by(const Manifest& manifest, const EvalConfig& config);

// One row for each study or patient of eval.by, in the order in which they
// first come, each with the least name of its images in the manifest; `images`
// themselves by image, or where they are such rows already (ConfigError where
// of another kind). A label is 1
// where an image's is, else not labeled where an image's is not. Damaged images
// count by their labels alone where another one is scored. An image that
// `manifest` lacks stays by itself.
Predictions scored_units(Predictions images, const Manifest& manifest,
                         const EvalConfig& config);

// What scores must have in common to be compared with one threshold, in words
// of --set: "eval.crops=1 eval.by=image".
std::string scored_with(const EvalConfig& config);

}  // namespace chexnet
