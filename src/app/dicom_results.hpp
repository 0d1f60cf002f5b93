// predict --dicom: what was found in DICOM files, as DICOM. chexnet-dicom, a
// separate process, reads the files again and writes.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/data/input_images.hpp"
#include "chexnet/launch/child_process.hpp"
#include "image_scores.hpp"

namespace chexnet {

void add_dicom_result_options(CLI::App& command, std::string& folder);
// Before the work. ConfigError: this build has no chexnet-dicom.
void check_dicom_results(const std::string& folder);

// The network that found it.
struct ReportedModel {
  std::string network, sha256;  // "densenet121"; of the weights' file
};

// Takes scores one by one, writes when all are known. Rank 0. The folder is
// there and empty (predict_folders.hpp).
class DicomResults {
 public:
  // `texts` must outlive it. `pictures`: the folder of the heat maps, or
  // empty: then there are reports and no captures.
  DicomResults(std::filesystem::path folder, const ImageScoreRows& texts,
               std::filesystem::path pictures);
  // Of an image of the request, of `row` of the split; ignores images that were
  // not converted from DICOM, or have an error. `score.heat_maps` may be drawn
  // later.
  void take(size_t row, const InputImage& image, const ImageScore& score);
  // False where somebody stopped it. CheckpointError: files cannot be written.
  bool write(const ReportedModel& model) const;

 private:
  Json captures_of(const ImageScore& score, const Json& findings) const;
  bool say_end(const ChildOutput& ended) const;

  std::filesystem::path folder_;
  const ImageScoreRows& texts_;
  std::filesystem::path pictures_;
  Json images_;  // of the request
};

}  // namespace chexnet
