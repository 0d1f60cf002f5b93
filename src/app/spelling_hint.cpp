// The parser keeps the words that it could not place. The first of them is
// compared with what could have stood there: an option of the command that was
// recognized, or a command where none was.
#include "chexnet/app/spelling_hint.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <string_view>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

const CLI::App& innermost_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost_command(*parsed.front());
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command :
       app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// Options that are gone, and what is written instead: an option, and perhaps
// more.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8>
    kRemoved = {{
        {"--slurm", "--scheduler slurm"},
        {"--pbs", "--scheduler pbs"},
        {"--local", "--scheduler local"},
        {"--lsf", "--scheduler slurm or pbs; scripts/examples/lsf.sh"},
        {"--flux", "--scheduler slurm or pbs; scripts/examples/flux.sh"},
        {"--kubernetes",
         "--scheduler slurm or pbs; scripts/examples/kubernetes_job.yaml"},
        {"--ppn", "--ranks-per-node"},
        {"--gpus", "--gpus-per-node"},
    }};

// Empty for what was no option of `command`.
std::string written_for(const std::string& removed, const CLI::App& command) {
  for (const auto& [name, instead] : kRemoved) {
    const std::string option(instead.substr(0, instead.find(' ')));
    if (name == removed && command.get_option_no_throw(option) != nullptr)
      return std::string(instead);
  }
  return "";
}

}  // namespace

std::string spelling_hint(const CLI::App& app) {
  const auto left = app.remaining(true);
  if (left.empty()) return "";
  const std::string word = left.front().substr(0, left.front().find('='));
  const CLI::App& command = innermost_command(app);
  const std::string instead = written_for(word, command);
  if (!instead.empty())
    return formatted("'{}' is gone. Hint: now {}\n", word, instead);
  const auto known =
      word.starts_with('-') ? option_names(command) : command_names(command);
  if (known.empty()) return "";
  return formatted("'{}' is not known. Hint: nearest are {}\n", word,
                   nearest_names(word, known));
}

}  // namespace chexnet
