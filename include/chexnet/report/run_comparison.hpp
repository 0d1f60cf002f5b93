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

// Runs that differ only in seed (and name, folder) form a group. What counts is
// the test score of the checkpoint each run chose: the largest of many
// validation scores is too good by their noise.
struct RunGroup {
  std::vector<std::string> settings;  // "train.lr=0.001", …: what differs
                                      // between groups
  std::vector<const RunSummary*> runs;
  Spread test, val;  // mean AUROC
};
// None of `runs`, at least one, waits to begin.
std::vector<RunGroup> compare_runs(const std::vector<RunSummary>& runs);
// A line for each run, and for several the comparison.
std::string comparison_text(const std::vector<RunSummary>& runs);

}  // namespace chexnet
