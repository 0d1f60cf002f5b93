// Any column of a table of images, for those who group images by it.
#pragma once

#include <string>
#include <vector>

#include "chexnet/data/manifest.hpp"

namespace chexnet {

// The cells of `column` [N], trimmed; the tables are read once more. Names meet
// but for case. DataError: a table without it (the message names what it has),
// or one that has changed since.
std::vector<std::string> table_column(const Manifest& manifest,
                                      const std::string& column);

}  // namespace chexnet
