// The contents of a page of several runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/report/run_comparison.hpp"
#include "report_values.hpp"

namespace chexnet {

struct Compared {
  std::filesystem::path folder;
  std::string name;
  Json results;
  std::string split;
  const RunSummary* summary = nullptr;
  std::string seed() const { return summary->config.at("run.seed"); }
  const Json& evaluation() const {
    return member(member(results, "evaluations"), split);
  }
  // Of the images, and whether each has a score of its own.
  std::string scored_set() const {
    const std::string sum = text(member(evaluation(), "split"), "sha256");
    return sum.empty() ? "" : sum + " by " + text(evaluation(), "by");
  }
};

// A group of compare_runs().
struct Setting {
  std::string name;
  std::vector<std::string> keys;  // "train.lr=0.001": what differs
  std::vector<const Compared*> runs;
  AurocSpread val, test;
};

// Tables of the differences of settings: each against the first, and all that
// have seeds enough against each other. Adds to `sentences`
// (ComparisonPage::sentences).
std::string setting_differences(const std::vector<Setting>& settings,
                                std::vector<std::string>& sentences);

}  // namespace chexnet
