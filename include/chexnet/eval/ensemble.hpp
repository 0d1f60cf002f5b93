// Several networks of one kind that answer as one: the mean of their logits.
// It is as sure as they are in the mean, and their spread tells how far they
// agree.
#pragma once

#include <span>
#include <vector>

#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct MemberMean {
  double logit = 0;   // mean of the members' logits
  double spread = 0;  // standard deviation (n - 1) of their probabilities
};
// What thresholds are that were chosen out of fold, each image with the score
// of one member or some.
inline constexpr const char* kChosenOutOfFold =
    "thresholds and calibration were chosen on scores of single members, which "
    "lie further apart than their mean: it calls fewer images positive than a "
    "rule asks for";
// `logits`: one of each member, of one image and finding; at least one, and of
// one the spread is 0.
MemberMean mean_of_members(std::span<const double> logits);

// From the members' tables, without a network: of each image the mean of those
// that have it and have scored it, so that of folds each image has the score of
// the one network that was not trained on it. Images in the order of the first
// table that has them; Predictions::spreads where an image has several scores.
// All have the same findings in one order. DataError: a label differs.
Predictions mean_of_tables(const std::vector<Predictions>& members);

}  // namespace chexnet
