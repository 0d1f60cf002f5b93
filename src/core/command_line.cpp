#include "chexnet/core/command_line.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

// `command` itself where `word` names none of its commands.
const CLI::App* inner_command(const CLI::App* command,
                              const std::string& word) {
  const auto named = command->get_subcommands(
      [&](const CLI::App* inner) { return inner->check_name(word); });
  return named.empty() ? command : named.front();
}

[[noreturn]] void refuse(const std::string& name) {
  throw CLI::ValidationError(
      name, "is empty. Hint: give a value, or leave the option out");
}

}  // namespace

// The words are looked at before the parser sees them: afterwards nobody knows
// what followed an option.
void refuse_empty_values(const CLI::App& app,
                         const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string before = "an argument";
  for (const auto& word : words) {
    if (word.empty()) refuse(before);
    const bool is_option = word.starts_with("--");
    if (!is_option) command = inner_command(command, word);
    const std::string name = word.substr(0, word.find('='));
    const bool has_no_value = is_option && name.size() + 1 == word.size();
    // A value may look so too: --mpi-args "--mca a b="
    if (has_no_value && command->get_option_no_throw(name) != nullptr)
      refuse(name);
    before = is_option ? name : "an argument";
  }
}

int say_end_of_parsing(const CLI::App& app, const CLI::ParseError& end) {
  std::ostringstream error;
  const bool is_help = app.exit(end, std::cout, error) == 0;
  std::cerr << printable(error.str(), "\n");
  return is_help ? code_when_said(0) : static_cast<int>(ExitCode::kUsage);
}

void require_stdout() {
  if (!std::cout.flush())
    throw CheckpointError(
        "[output] what should stand on stdout could not be written. Hint: is "
        "its disk full, or is it closed?");
}

int code_when_said(int code) {
  try {
    require_stdout();
    return code;
  } catch (const Error& e) {
    log_error(e.what());
    return static_cast<int>(e.code());
  }
}

}  // namespace chexnet
