// How much two names differ, for "did you mean".
#pragma once

#include <cstddef>
#include <string_view>

namespace chexnet {

// Letters to put in, take out or replace, and neighbors to swap. Takes a.size()
// x b.size() steps.
size_t edit_distance(std::string_view a, std::string_view b);

// Whether `name` may be a misspelling of `known`: its beginning, or at most two
// of five letters differ. Dashes at the front do not count.
bool is_near(std::string_view name, std::string_view known);

}  // namespace chexnet
