// Several runs side by side, and the scores of settings over their seeds.
#pragma once

#include <string>
#include <vector>

#include "chexnet/report/run_summary.hpp"

namespace chexnet {

struct Spread {
  int count = 0;            // of runs that have the figure
  double mean = 0, sd = 0;  // sd of the sample, 0 for one run
};

// The sample's deviation (divided by n - 1): seeds are a sample of all seeds.
Spread spread_of(const std::vector<double>& values);
// "0.7500 ± 0.0707 (n = 2)", "-" of none.
std::string spread_text(const Spread& spread);

// Mean AUROCs over seeds, and how many findings each of them is a mean of.
struct AurocSpread : Spread {
  // The fewest of a run, and the most: folds may differ.
  size_t findings = 0, most_findings = 0;
  bool rough = false;  // of one of the runs
};
// "0.7500 ± 0.0707 (n = 2) over 8 findings".
std::string spread_text(const AurocSpread& spread);

// Finished runs, one of each seed and fold, that differ in nothing else on
// which results depend (Effect in config/options.hpp). All scores are of the
// checkpoint that each run chose.
struct RunGroup {
  // "train.lr=0.001", …: what differs between groups
  std::vector<std::string> settings;
  std::vector<const RunSummary*> runs;
  AurocSpread test, val;
};
struct RunGroups {
  std::vector<RunGroup> groups;
  // Sentences: which runs are not counted, and why; which have collapsed.
  std::vector<std::string> remarks;
  // All were validated on the same images, labels, findings and crops: only
  // then does validation rank them.
  bool same_validation = true;
};
inline constexpr const char* kOtherValidation =
    "validation does not rank these settings: they were validated on other "
    "images, labels, findings or crops";
RunGroups compare_runs(const std::vector<RunSummary>& runs);
// A line for each run, and for several the comparison: settings in the order of
// their validation scores, and the test score of the first alone, once no run
// goes on. A choice by the test score would report one that is too good.
std::string comparison_text(const std::vector<RunSummary>& runs);

}  // namespace chexnet
