// Heat maps against boxes, for a terminal and for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "chexnet/eval/localization.hpp"

namespace chexnet {

// A table by finding and the mean.
std::string localization_text(const Localization& localization);
// `localization` of docs/json.md.
nlohmann::ordered_json localization_json(const Localization& localization);

}  // namespace chexnet
