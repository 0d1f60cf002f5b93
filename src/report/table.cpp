#include "chexnet/report/table.hpp"

#include <algorithm>

namespace chexnet {

std::string aligned(const Rows& rows) {
  std::size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : rows)
    text += "  " + name + std::string(width - name.size() + 2, ' ') + value + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace chexnet
