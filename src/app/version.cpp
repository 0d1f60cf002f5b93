#include "chexnet/app/version.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "chexnet/report/bill_of_materials.hpp"

namespace chexnet {

// Before the command line is parsed, as CLI11's own flag would end the program
// before it sees what follows.
bool print_version(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != "--version") return false;
  if (words.size() == 1)
    std::cout << "chexnet-train " CHEXNET_VERSION "\n";
  else if (words.size() == 2 && words[1] == "--json")
    std::cout << json_text(version_json(), 1) << "\n";
  else
    throw CLI::ValidationError(
        "--version",
        "is followed by something else. Hint: --version alone, or with --json");
  return true;
}

}  // namespace chexnet
