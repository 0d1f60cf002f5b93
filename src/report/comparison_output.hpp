// Two networks on the same images, for a terminal and for scripts.
#pragma once

#include <string>

#include "chexnet/core/json.hpp"
#include "chexnet/eval/comparison.hpp"

namespace chexnet {

// A table by finding and the mean; `against` names the other one.
std::string comparison_text(const Comparison& comparison,
                            const std::string& against);
// `comparison` of docs/json.md.
Json comparison_json(const Comparison& comparison, const std::string& against);

}  // namespace chexnet
