// Edit distance by Wagner and Fischer, with Damerau's swaps of two neighbors:
// row[j] is the distance of the first i letters of a to the first j of b,
// before[j] and two_before[j] that of the first i - 1 and i - 2.
#include "chexnet/core/near_name.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace chexnet {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1), before(row), two_before(row);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_before, before);
    std::swap(before, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_before[j - 2] + 1);
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
