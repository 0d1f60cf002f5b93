// An option without a value, as "$SITE" of a shell that has no SITE gives it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace chexnet {

// CLI::ValidationError for the first word that is empty, or is `--option=` of
// the command that is called: such a value would count as none, and the parser
// takes the next word for the value of the second.
void refuse_empty_values(const CLI::App& app,
                         const std::vector<std::string>& words);

}  // namespace chexnet
