// Which rows of the table a stored image may be for, by its name: hashed, so
// that a search of N images costs N times the depth of their folders, however
// alike their last parts are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chexnet/data/manifest.hpp"

namespace chexnet {

std::string_view last_part(std::string_view path);  // what follows the last '/'

class NameTable {
 public:
  // `manifest` must outlive the table.
  NameTable(const Manifest& manifest, const std::vector<uint32_t>& rows);
  // The rows whose whole name `stored` is or ends with, at a '/'. A stored name
  // without folders (records and packs may keep the last part alone) is also
  // for a row with folders when no other row has the same last part.
  std::vector<uint32_t> rows_for(std::string_view stored);
  size_t lookups() const { return lookups_; }

 private:
  static constexpr uint32_t kSeveral = UINT32_MAX;
  std::unordered_map<std::string_view, uint32_t> by_name_, by_last_part_;
  size_t lookups_ = 0;
};

}  // namespace chexnet
