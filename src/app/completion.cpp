// The installed program prints it, so the two always agree.
#include "completion.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <variant>

#include "chexnet/config/options.hpp"

namespace chexnet {
namespace {

using Subcommands = std::vector<const CLI::App*>;

Subcommands subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string options_of(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options())
    for (const auto& name : names_of(*option)) words += name + " ";
  return words;
}

// "TEXT:{a,b}", as CLI11 describes a fixed set -> "a b"; "" without one.
std::string choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string words = type.substr(begin + 1, end - begin - 1);
  std::ranges::replace(words, ',', ' ');
  return words;
}

// Words that may stand where no option does: commands, or a fixed set. "" are
// files.
std::string positions_of(const CLI::App& command) {
  std::string words;
  for (const CLI::App* inner : subcommands_of(command))
    words += inner->get_name() + " ";
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) words += choices_of(*option);
  return words;
}

std::string values_of(const ConfigOption& option) {
  Config config;
  const FieldRef field = option.field(config);
  Strings values = option.choices;
  if (std::holds_alternative<bool*>(field)) values = {"true", "false"};
  if (const auto* named = std::get_if<NamedValue>(&field))
    values = named->names;
  std::string words;
  for (const auto& value : values) words += value + " ";
  return words;
}

void completion_line(const std::string& place, const CLI::App& command) {
  std::cout << "    " << place << ") options='" << options_of(command)
            << "' words='" << positions_of(command) << "' ;;\n";
}

// Values of options with a fixed set of them, whichever command they are of.
void completion_values(const CLI::App& app) {
  std::map<std::string, std::set<std::string>> known;
  const auto look_at = [&](const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
      std::istringstream words(choices_of(*option));
      for (std::string word; words >> word;)
        for (const auto& name : names_of(*option)) known[name].insert(word);
    }
  };
  for (const CLI::App* command : subcommands_of(app)) {
    look_at(*command);
    for (const CLI::App* inner : subcommands_of(*command)) look_at(*inner);
  }
  for (const auto& [name, values] : known) {
    std::cout << "    " << name << ") words='";
    for (const auto& value : values) std::cout << value << " ";
    std::cout << "' ;;\n";
  }
}

// bash takes `key=value` apart: key, =, value.
void completion_keys() {
  std::cout << R"(  local key=''
  [ "$before" != = ] || key=${COMP_WORDS[COMP_CWORD-2]}
  [ "$word" != = ] || { key=$before word=''; }
  case $key in
)";
  for (const auto& option : config_options())
    if (const std::string values = values_of(option); !values.empty())
      std::cout << "    " << option.key << ") words='" << values << "' ;;\n";
  std::cout << R"(  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    return
  fi
  if [ "$before" = --set ]; then
    compopt -o nospace
    words=')";
  for (const auto& option : config_options())
    if (option.tier != Tier::kHidden) std::cout << option.key << "= ";
  std::cout << R"('
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    return
  fi
)";
}

}  // namespace

void print_completion(const CLI::App& app) {
  std::cout
      << R"(# bash completion for chexnet-train, printed by `chexnet-train config --completion`
# Where it has nothing to say bash completes names of files.
_chexnet_train() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words='' options=''
)";
  completion_keys();
  std::cout << "  case $before in\n";
  completion_values(app);
  std::cout << R"(  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    return
  fi
  local place="${COMP_WORDS[1]} "
  [ "$COMP_CWORD" -lt 3 ] || place+=${COMP_WORDS[2]}
  [ "$COMP_CWORD" -gt 1 ] || place=''
  case $place in
)";
  for (const CLI::App* command : subcommands_of(app)) {
    for (const CLI::App* inner : subcommands_of(*command))
      completion_line("'" + command->get_name() + " " + inner->get_name() + "'",
                      *inner);
    completion_line("'" + command->get_name() + " '*", *command);
  }
  completion_line("*", app);
  std::cout << R"(  esac
  [[ $word != -* ]] || words=$options
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _chexnet_train chexnet-train
)";
}

}  // namespace chexnet
