// Columns are as wide as their widest cell, counted in bytes. A column whose
// cells are numbers, or "-", stands to the right. Cells may be names from a
// file.
#include "chexnet/core/text_table.hpp"

#include <algorithm>

#include "chexnet/core/plain_text.hpp"

namespace chexnet {

std::string aligned(const Rows& rows) {
  size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : rows)
    text += "  " + name + std::string(width - name.size() + 2, ' ') +
            printable(value) + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

namespace {
bool is_number(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789.,+-e% ") == std::string::npos &&
         text.find_first_of("0123456789") != std::string::npos;
}
}  // namespace

std::string columns(const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::vector<std::string>> lines = cells;
  for (auto& line : lines)
    for (auto& cell : line) cell = printable(cell);
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t c = 0; c < line.size(); ++c)
      widths[c] = std::max(widths[c], line[c].size());
  }
  // A column of numbers has its heading to the right too.
  std::vector<bool> right(widths.size(), lines.size() > 1);
  for (size_t l = 1; l < lines.size(); ++l)
    for (size_t c = 0; c < lines[l].size(); ++c)
      if (!is_number(lines[l][c]) && lines[l][c] != "-") right[c] = false;
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t c = 0; c < line.size(); ++c) {
      const std::string padding(widths[c] - line[c].size(), ' ');
      row += (c == 0 ? "" : "  ") +
             (right[c] ? padding + line[c] : line[c] + padding);
    }
    row.resize(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace chexnet
