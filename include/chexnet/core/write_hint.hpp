#pragma once

#include <string>

namespace chexnet {

// The advice where writing failed with errno `error`: the words after "Hint: ".
// `chosen_by`: the option, key or variable that says where the files go.
std::string write_hint(int error, const std::string& chosen_by);

}  // namespace chexnet
