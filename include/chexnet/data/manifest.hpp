// The table of images: name, patient, labels by finding, and what is known of the patient. Read
// once, const afterwards. Formats: NIH ChestX-ray14 (Wang et al., CVPR 2017; 2017 and v2020
// releases), CheXpert (Irvin et al., AAAI 2019), any CSV.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

struct Manifest {
  std::vector<std::string> findings;                    // [K]
  std::vector<std::string> images;                      // [N] names as in the table
  std::vector<std::string> patients;                    // [N]
  std::vector<float> labels;                            // [N, K]; 1, 0 or NaN = not labelled
  std::vector<float> ages;                              // [N] years, NaN = unknown
  std::vector<std::string> sexes, views;                // [N], empty = unknown
  std::unordered_map<std::string, std::uint32_t> rows;  // name -> row
  std::string path, sha256;                             // of the file; names the release

  std::size_t size() const { return images.size(); }
  std::size_t finding_count() const { return findings.size(); }
  const float* label_row(std::size_t row) const { return &labels[row * findings.size()]; }
};

// The 14 findings in the order of the ChestX-ray14 paper.
const std::vector<std::string>& nih_findings();

// Throws DataError naming file and line: unknown label, empty patient, wrong number of fields, an
// image twice.
Manifest read_manifest(const DataConfig& config);

}  // namespace chexnet
