// Two-column tables for people.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chexnet {

using Rows = std::vector<std::pair<std::string, std::string>>;
// "name   value" lines, names padded to the widest.
std::string aligned(const Rows& rows);

}  // namespace chexnet
