#include "chexnet/core/error.hpp"

#include <algorithm>

#include "chexnet/core/near_name.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {

// Nobody reads a cell or name of megabytes; the hint at the end stays.
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
  // As a fraction of the longer name: else the shortest would be the nearest.
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
