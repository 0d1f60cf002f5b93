// Scores of a split for a terminal and for scripts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/eval/comparison.hpp"
#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/localization.hpp"
#include "chexnet/eval/operating_table.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/eval/reliability.hpp"
#include "chexnet/eval/subgroup_table.hpp"
#include "chexnet/report/metrics_log.hpp"

namespace chexnet {

struct SplitScores {
  std::string split;
  Scores scores;
  std::string sha256 = {};  // of the split's images; empty for tables
  // Of the table of predictions that a run keeps; else empty.
  std::string predictions_sha256 = {};
  Figures figures = {};                     // on rank 0 alone
  std::vector<OperatingPoint> points = {};  // where there are thresholds
  std::string rules_from = {};  // "the model", or a table; empty: none chosen
  std::vector<Reliability> reliability = {};  // where `figures` are
  std::vector<SubgroupTable> subgroups = {};  // by columns, where requested
  std::optional<double> prevalence = {};      // that PPV and NPV are also at
  std::string against = {};  // the table of another network, where compared
  std::optional<Comparison> comparison = {};
  std::optional<Localization> localization = {};  // against boxes
  size_t missing = 0;  // images left out of the split: data.missing=skip
};

// Figures of a split with their intervals, the points of `rules` and the effect
// of its calibration; null: thresholds and calibration were chosen on these
// images, where they prove nothing.
void add_figures(const Predictions& predictions,
                 const std::vector<std::string>& findings,
                 const DecisionRules* rules, const BootstrapOptions& draws,
                 SplitScores& result);

// A table: finding, AUROC and its interval, average precision, Brier score,
// positives; then the mean and "any finding". `split` may also name tables.
std::string scores_text(const SplitScores& result);
// Its head alone, in at most 21 lines: of more than 14 findings the first.
std::string scores_summary(const SplitScores& result);
// "0.812 (0.780 - 0.841) over 8 findings", "not defined".
std::string mean_auroc_text(const MeanFigure& mean);
// mean_auroc, the ends of its interval, findings_in_mean and mean_is_rough, for
// metrics.jsonl.
void add_mean_auroc(const MeanFigure& mean, MetricFields& fields);
// The object of `evaluate` in docs/json.md.
Json scores_json(const SplitScores& result);

}  // namespace chexnet
