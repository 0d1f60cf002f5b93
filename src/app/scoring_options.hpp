// What `evaluate` computes of a prediction beside its AUROCs, and where it puts
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/operating_table.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/report/html_report.hpp"

namespace chexnet {

struct ScoringOptions {
  std::string choose_on, figures;  // paths, or empty
  OperatingRules rules;
  std::optional<double> prevalence;
  bool json = false;
};

void add_scoring_options(CLI::App& command, ScoringOptions& options);

// The table of --choose-on, where there is one; before the work, as it may be
// refused.
std::optional<Predictions> read_choose_on(const ScoringOptions& options);

// Completes `result`, which has the scores, by figures and operating points of
// `findings`, writes --figures and prints all.
void print_scores(SplitScores result, const Predictions& predictions,
                  const std::vector<std::string>& findings,
                  const std::optional<Predictions>& choose_on,
                  const ScoringOptions& options, int threads);

}  // namespace chexnet
