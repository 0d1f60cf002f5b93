// Figures by parts of the images for a terminal and for scripts.
#pragma once

#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/eval/subgroup_table.hpp"
#include "figure_output.hpp"

namespace chexnet {

// A section for each column; empty without one.
std::string subgroups_text(const std::vector<SubgroupTable>& tables);
// "subgroups" of `evaluate` in docs/json.md.
Json subgroups_json(const std::vector<SubgroupTable>& tables);

}  // namespace chexnet
