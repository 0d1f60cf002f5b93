// generate: the man page and the bash completion, from the command line's own
// description and the table of config keys. Both are printed when the program
// is installed, so they are never behind it.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
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

// Text for troff: no line may begin with a dot or quote, and minus signs are
// minus signs.
std::string troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '-' || c == '\\') out += '\\';
    out += c;
    if (c == '\n') out += "\\&";
  }
  return out;
}

void man_options(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const auto names = names_of(*option);
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    if (names.empty()) text = option->get_name();
    if (option->get_expected_max() > 0 && !names.empty())
      text += " " + (option->get_type_name().empty() ? "VALUE"
                                                     : option->get_type_name());
    std::cout << ".TP\n\\fB" << troff(text) << "\\fR\n\\&"
              << troff(option->get_description()) << "\n";
  }
}

void man_page(const CLI::App& app) {
  std::cout << ".TH CHEXNET\\-TRAIN 1 \"\" \"chexnet\\-train " CHEXNET_VERSION
               "\" \"User Commands\"\n.SH NAME\nchexnet\\-train \\- "
            << troff(app.get_description())
            << "\n.SH SYNOPSIS\n\\fBchexnet\\-train\\fR \\fICOMMAND\\fR "
               "[\\fIOPTIONS\\fR]\n"
               ".SH COMMANDS\n";
  for (const CLI::App* command : subcommands_of(app)) {
    std::cout << ".SS " << command->get_name() << "\n\\&"
              << troff(command->get_description()) << "\n";
    man_options(*command);
    for (const CLI::App* inner : subcommands_of(*command)) {
      std::cout << ".P\n\\fB" << command->get_name() << " " << inner->get_name()
                << "\\fR: " << troff(inner->get_description()) << "\n";
      man_options(*inner);
    }
  }
  std::cout << ".SH CONFIG KEYS\nOf YAML files and \\fB\\-\\-set\\fR.\n";
  const Config defaults;
  for (const auto& option : config_options())
    std::cout << ".TP\n\\fB" << troff(option.key)
              << "\\fR = " << troff(option_text(option, defaults)) << "\n\\&"
              << troff(option.help) << "\n";
  std::cout << ".SH EXIT STATUS\n" << troff(app.get_footer()) << "\n";
}

std::string words_of(const CLI::App& command) {
  std::string words;
  for (const CLI::App* inner : subcommands_of(command))
    words += inner->get_name() + " ";
  for (const CLI::Option* option : command.get_options())
    for (const auto& name : names_of(*option)) words += name + " ";
  return words;
}

void completion(const CLI::App& app) {
  std::cout << "# bash completion for chexnet-train, printed by `chexnet-train "
               "generate completion`\n"
               "_chexnet_train() {\n"
               "  local word=${COMP_WORDS[COMP_CWORD]} "
               "before=${COMP_WORDS[COMP_CWORD-1]} words\n"
               "  if [ \"$before\" = --set ]; then\n"
               "    compopt -o nospace\n    words='";
  for (const auto& option : config_options()) std::cout << option.key << "= ";
  std::cout << "'\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
               "\"$word\")\n    return\n  fi\n"
               "  case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n";
  for (const CLI::App* command : subcommands_of(app)) {
    for (const CLI::App* inner : subcommands_of(*command))
      std::cout << "    \"" << command->get_name() << " " << inner->get_name()
                << "\") words='" << words_of(*inner) << "' ;;\n";
    std::cout << "    \"" << command->get_name() << " \"*) words='"
              << words_of(*command) << "' ;;\n";
  }
  std::cout << "    *) words='" << words_of(app)
            << "' ;;\n  esac\n"
               "  [ \"$COMP_CWORD\" -gt 1 ] || words='"
            << words_of(app)
            << "'\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
               "\"$word\")\n}\n"
               "complete -o default -F _chexnet_train chexnet-train\n";
}

}  // namespace

void add_generate(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "generate", "print the man page or the bash completion");
  auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "man or completion")
      ->required()
      ->check(CLI::IsMember({"man", "completion"}));
  command->callback([&app, &invocation, what] {
    invocation.run = [&app, what] {
      *what == "man" ? man_page(app) : completion(app);
      return 0;
    };
  });
}

}  // namespace chexnet
