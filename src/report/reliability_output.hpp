// Calibration and reliability bins for a terminal and for scripts.
#pragma once

#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/eval/reliability.hpp"
#include "figure_output.hpp"

namespace chexnet {

// A section after the table of figures; empty where nothing was calibrated.
std::string reliability_text(const std::vector<Reliability>& reliability);
// "reliability" of `evaluate` in docs/json.md.
Json reliability_json(const std::vector<Reliability>& reliability);

}  // namespace chexnet
