// Heat maps against boxes, for a terminal and for scripts.
#pragma once

#include <string>

#include "chexnet/core/json.hpp"
#include "chexnet/eval/localization.hpp"

namespace chexnet {

// A table by finding and the mean.
std::string localization_text(const Localization& localization);
// `localization` of docs/json.md.
Json localization_json(const Localization& localization);

}  // namespace chexnet
