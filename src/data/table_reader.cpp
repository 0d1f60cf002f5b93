// A table is read once from top to bottom; what a row lacks is refused with its
// line. Columns are found by name, so extra ones are no matter.
#include "table_reader.hpp"

#include <algorithm>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "table_rows.hpp"

namespace chexnet {

Manifest read_table(const TableFile& file, bool may_lack_findings,
                    const S3Config& s3, RowChoice& choice) {
  Manifest m;
  m.path = file.path;
  m.tables = {{m.path, 0}};
  const std::string text = utf8_table(m.path, s3);
  m.sha256 = sha256_hex(text);
  // No row is shorter than that, but a file of empty lines has as many.
  constexpr size_t kShortestRow = 8;
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) + 1;
  const size_t rows = std::min(lines, text.size() / kShortestRow + 1);
  m.rows.reserve(rows);
  m.lines.reserve(rows);
  m.images.reserve(rows);
  m.patients.reserve(rows);
  switch (file.format) {
    case ManifestFormat::kNih:
      read_nih(text, file, choice, m);
      break;
    case ManifestFormat::kMimicCxr:
      read_mimic_cxr(text, file, s3, choice, m);
      break;
    case ManifestFormat::kPadchest:
      read_padchest(text, file, choice, m);
      break;
    case ManifestFormat::kVindr:
      read_vindr(text, file, choice, m);
      break;
    case ManifestFormat::kChexpert:
    case ManifestFormat::kBrax:
    case ManifestFormat::kCsv:
      read_columns(text, file, may_lack_findings, choice, m);
  }
  if (m.size() == 0 && m.left_out.empty())
    throw DataError(
        "[manifest] {}: no rows below the header. Hint: is the file complete?",
        m.path);
  if (file.split && m.splits.empty()) m.splits.assign(m.size(), file.split);
  return m;
}

}  // namespace chexnet
