// Tests that scripts/robustness runs longer than the default ones.
#pragma once

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace chexnet {

inline bool is_long() { return std::getenv("CHEXNET_LONG") != nullptr; }

// What such a test found: a line at the end of the file $CHEXNET_FIGURES, if
// one is named.
inline void write_figures(const nlohmann::json& figures) {
  if (const char* file = std::getenv("CHEXNET_FIGURES"))
    std::ofstream(file, std::ios::app) << figures << "\n";
}

}  // namespace chexnet
