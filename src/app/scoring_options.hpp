// What `evaluate` computes of a prediction beside its AUROCs, and where it puts
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/operating_table.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/report/scores_output.hpp"

namespace chexnet {

struct ScoringOptions {
  std::string choose_on, against, figures;  // paths, or empty
  OperatingRules rules;
  std::optional<double> prevalence;
  bool json = false;
};

void add_scoring_options(CLI::App& command, ScoringOptions& options);

// ConfigError when the output is one of the inputs; empty names are none.
void refuse_to_replace(const std::string& output,
                       const std::vector<std::string>& inputs);

// The tables of --choose-on and --against, where there are any; before the
// work, as they may be refused. The other network's labels come from `manifest`
// when there is one.
struct OtherTables {
  std::optional<Predictions> choose_on, against;
};
OtherTables read_other_tables(const ScoringOptions& options,
                              const Manifest* manifest);

// Completes `result`, which has the scores, by figures, operating points and
// the comparison of `findings`, writes --figures and prints all.
void print_scores(SplitScores result, const Predictions& predictions,
                  const std::vector<std::string>& findings,
                  const OtherTables& others, const ScoringOptions& options,
                  int threads);

}  // namespace chexnet
