// config --completion: the bash completion, from the command line's description
// and the table of config keys.
#pragma once

#include <CLI/CLI.hpp>

namespace chexnet {

void print_completion(const CLI::App& app);

}  // namespace chexnet
