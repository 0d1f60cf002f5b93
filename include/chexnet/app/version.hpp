// --version, alone or with --json (what this build is made of).
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// Prints the version form that the command line names; false where it names
// none. CLI::ValidationError where there is more than one of these forms.
bool print_version(const std::vector<std::string>& words);

}  // namespace chexnet
