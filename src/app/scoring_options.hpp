// The results of `evaluate` beside AUROCs, and their files.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/eval/operating_table.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/report/scores_output.hpp"

namespace chexnet {

struct ScoringOptions {
  std::string choose_on, against, figures;  // paths, or empty
  std::optional<double> threshold;          // the user's, of all findings
  std::optional<double> prevalence;
  std::vector<std::string> by;  // columns that make subgroups; "age:18,65"
  size_t resamples = 10000;
  uint64_t seed = 0;
  bool json = false;
};

void add_scoring_options(CLI::App& command, ScoringOptions& options);

// The tables of --choose-on and --against, where there are any; before the
// work, as they may be refused. The other network's labels come from `manifest`
// when there is one.
struct OtherTables {
  std::optional<Predictions> choose_on, against;
};
OtherTables read_other_tables(const ScoringOptions& options,
                              const Manifest* manifest);
// By study or patient, as eval.by says; what is so already stays.
void score_units(OtherTables& others, const Manifest& manifest,
                 const EvalConfig& config);

// Which group each row of the table is in, by a column of --by.
struct Grouping {
  std::string column;
  std::vector<std::string> values;
};
using Groups = std::vector<Grouping>;
// Before the work, as it may be refused. ConfigError without a table, or for
// what the images of a study have several of.
Groups read_groups(const ScoringOptions& options, const Manifest* manifest,
                   ScoredBy by);

// The inputs of figures.
struct Scored {
  const Predictions& predictions;
  const EvalConfig& config;
  const std::vector<std::string>& findings;
  const OtherTables& others;
  const DecisionRules* rules;  // the model's own; null: none, or not to be used
  const Manifest* manifest;    // null: a table of predictions alone
  const Groups& groups;
};

// Completes `result`, which has the scores, by figures, operating points and
// the comparison, subgroups and reliability, writes --figures and prints all.
// Thresholds are those chosen on --choose-on, else the model's. `timeout_s`: of
// writing.
void print_scores(SplitScores result, const Scored& scored,
                  const ScoringOptions& options, int threads, double timeout_s);

}  // namespace chexnet
