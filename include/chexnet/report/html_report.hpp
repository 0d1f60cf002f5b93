// report.html: one self-contained page of a finished run, for a clinician first
// and for whoever repeats the run below. No network, no scripts.
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

// Several runs side by side: figures, settings that differ, and for each run
// its difference to the first one on the same images, with interval and p
// (compare()). ConfigError: fewer than two.
std::string comparison_html(const std::vector<std::filesystem::path>& folders);

// Writes report.html and model_card.md into `folder`, in the form that stays
// there. Errors as report_html.
void write_report(const std::filesystem::path& folder);

}  // namespace chexnet
