// A stored name is looked up whole, then without its first folder, and so on:
// as many look-ups as it has folders, however many images share its last part.
// A bare name also serves a row that has folders, if it is the only row with
// that last part.
#include "name_table.hpp"

namespace chexnet {

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

NameTable::NameTable(const Manifest& manifest,
                     const std::vector<uint32_t>& rows) {
  by_name_.reserve(rows.size());
  by_last_part_.reserve(rows.size());
  for (const auto row : rows) {
    const std::string_view name = manifest.images[row];
    by_name_.emplace(name, row);
    const auto [place, is_new] = by_last_part_.emplace(last_part(name), row);
    if (!is_new && place->second != row) place->second = kSeveral;
  }
}

std::vector<uint32_t> NameTable::rows_for(std::string_view stored) {
  std::vector<uint32_t> rows;
  for (std::string_view rest = stored;;) {
    ++lookups_;
    if (const auto found = by_name_.find(rest); found != by_name_.end())
      rows.push_back(found->second);
    const auto slash = rest.find('/');
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  const bool has_folders = stored.find('/') != std::string_view::npos;
  if (has_folders || !rows.empty()) return rows;
  ++lookups_;
  const auto found = by_last_part_.find(stored);
  if (found != by_last_part_.end() && found->second != kSeveral)
    rows.push_back(found->second);
  return rows;
}

}  // namespace chexnet
