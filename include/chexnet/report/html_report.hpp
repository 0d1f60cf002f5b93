// report.html: one self-contained page of a finished run, for a clinician first
// and for whoever repeats the run below. No network, no scripts.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

struct ReportOptions {
  // Without pictures, paths, patients, hosts and users: for passing on.
  bool for_sharing = false;
};

// From results.json, metrics.jsonl and the tables of predictions of `folder`.
// CheckpointError: it has no results.
std::string report_html(const std::filesystem::path& folder,
                        const ReportOptions& options);

}  // namespace chexnet
