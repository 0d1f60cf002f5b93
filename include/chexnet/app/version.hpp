// --version, alone or with --json (what this build is made of).
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// Prints what the command line asks for; false where it asks for something
// else. CLI::ValidationError where there is more than one of these forms.
bool print_version(const std::vector<std::string>& words);

}  // namespace chexnet
