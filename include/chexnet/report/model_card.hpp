// model_card.md (Mitchell et al., "Model cards for model reporting", FAT*
// 2019): what a network is, what it was measured to do and what it is not for,
// to lie beside its weights wherever they go. It names no path of this machine.
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/core/text_table.hpp"

namespace chexnet {

// From results.json of `folder`. CheckpointError: there is none.
std::string model_card(const std::filesystem::path& folder);

// "| name | value |" lines with a head; text stays text.
std::string markdown_table(const Rows& rows);

}  // namespace chexnet
