// Edit distance by Wagner and Fischer with one row: row[j] is the distance of
// the first i letters of a to the first j of b, and `diagonal` that of i - 1 to
// j - 1.
#include "chexnet/core/error.hpp"

#include <algorithm>
#include <numeric>

#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

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

}  // namespace

// A cell or name of megabytes is not what anybody reads; the hint at the end
// stays.
Error::Error(ExitCode code, const std::string& text)
    : std::runtime_error(printable(shortened(text, kLongestError), "\n\t")),
      code_(code) {}

std::string nearest_names(std::string_view name,
                          const std::vector<std::string>& known, size_t count) {
  std::vector<std::pair<size_t, std::string>> ranked;
  ranked.reserve(known.size());
  // A distance takes the product of both lengths.
  constexpr size_t kLongestName = 200;
  const auto beginning = [](std::string_view text) {
    return text.substr(0, kLongestName);
  };
  // By share of the longer name: the shortest would be the nearest otherwise.
  constexpr size_t kWhole = 1000;
  for (const auto& candidate : known) {
    const std::string a = lowered(beginning(name));
    const std::string b = lowered(beginning(candidate));
    const size_t longer = std::max({a.size(), b.size(), size_t{1}});
    ranked.emplace_back(edit_distance(a, b) * kWhole / longer, candidate);
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (size_t i = 0; i < std::min(count, ranked.size()); ++i)
    text += (i ? ", '" : "'") + ranked[i].second + "'";
  return text;
}

}  // namespace chexnet
