// predict --dicom-sr and --dicom-sc: what was found in DICOM files, as DICOM.
// chexnet-dicom, a process of its own, reads the files again and writes.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chexnet/app/image_scores.hpp"
#include "chexnet/core/json.hpp"

namespace chexnet {

struct DicomResultOptions {
  std::string reports, captures;  // folders; empty: none are wanted
  bool wanted() const { return !reports.empty() || !captures.empty(); }
};
void add_dicom_result_options(CLI::App& command, DicomResultOptions& options);
// Before the work. CheckpointError: a folder that holds something already.
// ConfigError: this build has no chexnet-dicom.
void check_dicom_result_options(const DicomResultOptions& options);

// The network that found it.
struct ReportedModel {
  std::string network, sha256;  // "densenet121"; of the weights' file
};

// Takes scores one by one, writes when all are known. Rank 0.
class DicomResults {
 public:
  // `texts` must outlive it.
  DicomResults(const DicomResultOptions& options, const ImageScoreRows& texts);
  // Images that are no DICOM files on their own, or have errors, are passed
  // over. `score.heat_maps` may be drawn later.
  void take(const ImageScore& score);
  // `pictures`: the folder of the heat maps. Errors as chexnet-dicom's.
  void write(const ReportedModel& model,
             const std::filesystem::path& pictures) const;

 private:
  DicomResultOptions options_;
  const ImageScoreRows& texts_;
  Json images_;
};

}  // namespace chexnet
