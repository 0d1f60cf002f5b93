// Rows are found by their lines, which the manifest noted: so it does not
// matter which columns name images, and which rows a format leaves out.
#include "chexnet/data/table_column.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string_view>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/table_text.hpp"

namespace chexnet {
namespace {

size_t find_column(const std::vector<std::string_view>& header,
                   const std::string& column, const std::string& path) {
  std::vector<std::string> names;
  for (const auto name : header) names.emplace_back(trimmed(name));
  const auto found = std::ranges::find(names, lowered(column), lowered);
  if (found == names.end())
    throw DataError("[manifest] {}: has no column '{}'. Hint: it has {}", path,
                    column, listed(names, 40));
  if (std::ranges::count(names, lowered(column), lowered) > 1)
    throw DataError(
        "[manifest] {}: column '{}' is in the header twice. Hint: rename or "
        "remove one",
        path, *found);
  return static_cast<size_t>(found - names.begin());
}

// Appends the cells of the rows first .. end, all of one table.
void add_cells(const Manifest& manifest, const Manifest::Table& table,
               size_t end, const std::string& column,
               std::vector<std::string>& cells) {
  const std::string text = table_text(table.path, manifest.s3);
  CsvReader csv(text, table.path, separator_of(text));
  std::vector<std::string_view> fields;
  csv.next(fields);
  const size_t wanted = find_column(fields, column, table.path);
  size_t row = table.first_row;
  while (row < end && csv.next(fields)) {
    if (static_cast<uint32_t>(csv.line()) != manifest.lines[row]) continue;
    cells.emplace_back(wanted < fields.size() ? trimmed(fields[wanted]) : "");
    ++row;
  }
  if (row < end)
    throw DataError(
        "[manifest] {}: has changed since it was read. Hint: start again",
        table.path);
}

}  // namespace

std::vector<std::string> table_column(const Manifest& manifest,
                                      const std::string& column) {
  assert(!manifest.tables.empty() && manifest.lines.size() == manifest.size());
  std::vector<std::string> cells;
  for (size_t t = 0; t < manifest.tables.size(); ++t)
    add_cells(manifest, manifest.tables[t], manifest.end_row(t), column, cells);
  return cells;
}

}  // namespace chexnet
