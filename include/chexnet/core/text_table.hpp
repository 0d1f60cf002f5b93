// Tables for people.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chexnet {

using Rows = std::vector<std::pair<std::string, std::string>>;
// "name   value" lines, names padded to the widest.
std::string aligned(const Rows& rows);

// Columns padded to their widest cell, two spaces apart; the first line is the
// heading. Cells that are numbers stand to the right.
std::string columns(const std::vector<std::vector<std::string>>& lines);

}  // namespace chexnet
