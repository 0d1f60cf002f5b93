// Edit distance by Wagner and Fischer with one row: row[j] is the distance of
// the first i letters of a to the first j of b, and `diagonal` that of i - 1 to
// j - 1.
#include "chexnet/core/near_name.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace chexnet {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

bool is_near(std::string_view name, std::string_view known) {
  const auto letters = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  const std::string_view a = letters(name), b = letters(known);
  if (a.empty()) return false;
  return b.starts_with(a) ||
         5 * edit_distance(a, b) <= 2 * std::max(a.size(), b.size());
}

}  // namespace chexnet
