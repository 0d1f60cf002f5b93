// report.html: one self-contained page of a finished run: settings, curves
// (inline SVG), AUROC per finding. No scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/core/table.hpp"
#include "chexnet/report/scores_output.hpp"

namespace chexnet {

// Reads the curves from `folder`/metrics.jsonl and writes `folder`/report.html.
void write_report(const std::filesystem::path& folder, const std::string& title,
                  const Rows& settings,
                  const std::vector<SplitScores>& results);

}  // namespace chexnet
