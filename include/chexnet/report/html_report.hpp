// report.html: one self-contained page of a finished run: settings, curves
// (inline SVG), AUROC per finding. No scripts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/table.hpp"
#include "chexnet/eval/comparison.hpp"
#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/operating_table.hpp"
#include "chexnet/eval/predictions.hpp"

namespace chexnet {

struct SplitScores {
  std::string split;
  Scores scores;
  std::string sha256 = {};  // of the split's images; empty for tables
  Figures figures = {};     // on rank 0 alone
  std::vector<OperatingPoint> points = {};  // where thresholds were asked for
  std::optional<double> prevalence = {};    // that PPV and NPV are also at
  std::string against = {};  // the table of another network, where compared
  std::optional<Comparison> comparison = {};
};

// Reads the curves from `folder`/metrics.jsonl and writes `folder`/report.html.
void write_report(const std::filesystem::path& folder, const std::string& title,
                  const Rows& settings,
                  const std::vector<SplitScores>& results);

}  // namespace chexnet
