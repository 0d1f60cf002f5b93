// One table of images and labels as its file says it.
#pragma once

#include <optional>
#include <string>

#include "chexnet/config/config.hpp"
#include "chexnet/data/manifest.hpp"
#include "row_choice.hpp"

namespace chexnet {

struct TableFile {
  std::string path;
  ManifestFormat format = ManifestFormat::kNih;
  ColumnsConfig columns;           // of kCsv
  std::optional<SplitName> split;  // of all its rows
  std::string sample_weight;       // column, which the table may lack
};

// The rows that `choice` keeps; no row may be left. Labels are what the cells
// say: 1, 0, -1 or NaN. `may_lack_findings`: of columns.findings some, but not
// all. Errors as of read_manifest.
Manifest read_table(const TableFile& file, bool may_lack_findings,
                    const S3Config& s3, RowChoice& choice);

}  // namespace chexnet
