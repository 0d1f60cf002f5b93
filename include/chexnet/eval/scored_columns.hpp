// The images of a prediction that were scored, finding by finding. They stand
// in the order of their names: sums over them, and resamples of them, are then
// the same bits whatever the order of a table's rows was.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chexnet/eval/bootstrap.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct ScoredColumns {
  struct Column {
    std::string finding;
    size_t index = 0;            // in the prediction's findings
    std::vector<double> scores;  // [N]
    std::vector<float> labels;   // [N], NaN = not labeled
    size_t positives = 0, negatives = 0;
  };
  std::vector<size_t> rows;     // [N] of the prediction, by name of image
  std::vector<Column> columns;  // [K]
  bool probabilities = true;    // all scores are in 0..1
};

// `findings` as in score(): those that are wanted, empty = all.
ScoredColumns scored_columns(const Predictions& predictions,
                             const std::vector<std::string>& findings);

// Which columns a mean AUROC is over, without "No Finding": those with at least
// kFewPositives positives and as many negatives, of kLeastPatients patients
// each, so that chance in a rare finding moves no mean and each has an
// interval. Where there is none, all that have an AUROC; the mean is rough
// then, and has no interval.
struct MeanColumns {
  std::vector<size_t> columns;
  bool rough = false;
};
MeanColumns mean_columns(const ScoredColumns& scored,
                         const PatientNumbers& patients);

// Of the images in `rows`. Where the prediction knows no patients each image
// counts as one.
PatientNumbers patients_of(const Predictions& predictions,
                           const std::vector<size_t>& rows);

}  // namespace chexnet
