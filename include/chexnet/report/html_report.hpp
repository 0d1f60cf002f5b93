// report.html: one self-contained page of a finished run: first for a
// clinician, below for whoever repeats the run. No network, no scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace chexnet {

struct ReportOptions {
  // Without pictures, paths, patients, hosts and users: for passing on.
  bool for_sharing = false;
};

// From results.json, metrics.jsonl and the tables of predictions of `folder`.
// CheckpointError: it has no results.
std::string report_html(const std::filesystem::path& folder,
                        const ReportOptions& options);

struct ComparisonPage {
  std::string html;
  // Which setting is better, of each pair of settings with seeds enough; which
  // have too few. The page ends in them.
  std::vector<std::string> sentences;
};
// Several runs side by side, grouped by setting over seeds, and the settings'
// differences on the same images (compare_recipes()). ConfigError: fewer than
// two.
ComparisonPage comparison_page(
    const std::vector<std::filesystem::path>& folders);

// Writes report.html and model_card.md into `folder`, in the form that stays
// there. Errors as report_html.
void write_report(const std::filesystem::path& folder);

}  // namespace chexnet
