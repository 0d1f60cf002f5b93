// Scores of a split for a terminal and for scripts.
#pragma once

#include <string>

#include "chexnet/report/html_report.hpp"

namespace chexnet {

// A table: finding, AUROC and its interval, average precision, Brier score,
// positives; then the mean and "any finding". `split` may also name tables.
std::string scores_text(const SplitScores& result);
// The object of `evaluate` in docs/json.md.
std::string scores_json(const SplitScores& result);

}  // namespace chexnet
