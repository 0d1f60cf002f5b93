// The table of images: name, patient, labels by finding, and what is known of
// the patient. Read once, const afterwards. Formats: NIH ChestX-ray14 (Wang et
// al., CVPR 2017; 2017 and v2020 releases), CheXpert (Irvin et al., AAAI 2019),
// MIMIC-CXR-JPG (Johnson et al., 2019), PadChest (Bustos et al., 2020),
// VinDr-CXR (Nguyen et al., 2022), BRAX (Reis et al., 2022), any CSV.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

struct Manifest {
  std::vector<std::string> findings;  // [K]
  std::vector<std::string> images;    // [N] names as in the table
  std::vector<std::string> patients;  // [N]
  std::vector<float> labels;          // [N, K]; 1, 0 or NaN = not labeled
  // The same for scoring, where data.blank and data.uncertain make training's
  // differ; else empty.
  std::vector<float> scored;  // [N, K]
  // Which entries are -1 in the tables, whatever they count as; empty = none.
  std::vector<bool> uncertain;            // [N, K]
  std::vector<float> sample_weights;      // [N] of a row's loss; empty = all 1
  std::vector<float> ages;                // [N] years, NaN = unknown
  std::vector<std::string> sexes, views;  // [N], empty = unknown
  // [N], empty = unknown; two patients may have studies of one name.
  std::vector<std::string> studies;
  // [N] by the table or data.manifest.split; empty = none is said.
  std::vector<std::optional<SplitName>> splits;
  std::unordered_map<std::string, uint32_t> rows;  // name -> row
  std::string path, sha256;  // of the files; names the release
  // SHA-256 of the entries of data.finding_names; empty without one.
  std::string finding_names_sha256;
  // Names of images that data.filter and data.exclude keep out of the rows.
  std::unordered_set<std::string> left_out;
  struct Table {
    std::string path;
    size_t first_row;
    bool has_splits = false;  // as published, row by row
  };
  // That it was read from, in the order of their rows.
  std::vector<Table> tables;
  // [N] of each row in its table; empty = made in memory
  std::vector<uint32_t> lines;
  S3Config s3 = {};  // for what is read of them, and of lists, later
  // False: the table has no patient column, each image is its own.
  bool knows_patients = true;

  size_t size() const { return images.size(); }
  size_t finding_count() const { return findings.size(); }
  const float* label_row(size_t row) const {
    return &labels[row * findings.size()];
  }
  bool is_uncertain(size_t row, size_t finding) const {
    return !uncertain.empty() && uncertain[row * findings.size() + finding];
  }
  // One past the last row of tables[table].
  size_t end_row(size_t table) const {
    return table + 1 < tables.size() ? tables[table + 1].first_row : size();
  }
  // Where a row stands, for messages, which name no image: "valid.csv:17".
  std::string place(size_t row) const;
  const float* scored_row(size_t row) const {
    return scored.empty() ? label_row(row) : &scored[row * findings.size()];
  }
};

// The 14 findings in the order of the ChestX-ray14 paper.
const std::vector<std::string>& nih_findings();
// The 14 columns of CheXpert, MIMIC-CXR-JPG and BRAX, "No Finding" and "Support
// Devices" among them.
const std::vector<std::string>& chexpert_findings();

// The tables of data.manifest as one, without what data.filter and data.exclude
// leave out. Findings are aligned by name, after data.finding_names; where a
// table lacks one, its rows are not labeled. Blank cells follow the policy of
// their table's format.
//
// Labels for training follow data.blank and data.uncertain,
// those for scoring eval.blank and eval.uncertain;
// weights are those of data.sample_weight.
// Throws DataError naming file and line: unknown label, empty patient, wrong
// number of fields, an image twice, text that is not UTF-8; ConfigError for
// findings named twice, a policy of an unknown finding, a filter on a column
// that no table has. Logs what a part of the tables lacks.
Manifest read_manifest(const DataConfig& config, const EvalConfig& eval = {});

// The table as a network sees it that knows `findings`: columns by name
// (findings.hpp), not labeled where the table has none. Returns the table's
// findings that were left out.
std::vector<std::string> match_findings(
    Manifest& manifest, const std::vector<std::string>& findings);

}  // namespace chexnet
