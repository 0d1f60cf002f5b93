// The nearest matches of a misspelled word of the command line.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace chexnet {

// After a parse that failed or ended in a help: a line that names the first
// word nobody took, and what replaces an option that is gone, else the commands
// or options nearest to it; empty where no word is left.
std::string spelling_hint(const CLI::App& app);

}  // namespace chexnet
