// The model file of an ensemble (eval/ensemble.hpp): its members' arrays, each
// under "<number from 0>/", and the first one's description, without what
// differs and with "members" added.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/eval/decision_rules.hpp"

namespace chexnet {

// "0/": what the names of the first member's arrays begin with.
std::string member_prefix(size_t member);

// Of model files of single networks into `into`, with `rules`, if any, as those
// of the members are not the ensemble's. `out_of_fold`: they are
// (kChosenOutOfFold). It notes with them what they are for. Returns the
// members' SHA-256.
// CheckpointError: a file is none, is an ensemble, or is of another network,
// other findings or another input than the first.
std::vector<std::string> write_ensemble(
    const std::vector<std::filesystem::path>& members, bool out_of_fold,
    std::optional<DecisionRules> rules, const std::filesystem::path& into);

}  // namespace chexnet
