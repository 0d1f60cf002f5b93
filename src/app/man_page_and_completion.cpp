// generate: the man page and the bash completion, from the command line's own
// description and the table of config keys. Both are printed when the program
// is installed, so they are never behind it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <variant>

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

struct Entry {
  const char *what, *text;
};

constexpr std::array<Entry, 6> kExamples = {{
    {"chexnet-train phantom phantom", "a synthetic data set to try things on"},
    {"chexnet-train train cfg.yaml --set train.lr=3e-4",
     "train; one rank per GPU, or one on the CPU"},
    {"chexnet-train train cfg.yaml --ranks 4 --resume auto",
     "four ranks on this host, from where the run stopped"},
    {"chexnet-train submit --slurm --nodes 2 --gpus-per-node 4 --time 24:00:00 "
     "cfg.yaml",
     "the same as a batch job"},
    {"chexnet-train status runs/chexnet", "where a run stands"},
    {"chexnet-train predict runs/chexnet images/ --out scores.csv",
     "score new images"},
}};

constexpr std::array<Entry, 7> kVariables = {{
    {"CHEXNET_SITE",
     "YAML file with what a center writes down once for submit"},
    {"CHEXNET_CACHE",
     "of scripts/setup: where LibTorch is kept for all clones"},
    {"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE",
     "credentials of s3://, else ~/.aws/credentials"},
    {"CUDA_VISIBLE_DEVICES", "the GPUs to use"},
    {"OMP_NUM_THREADS",
     "compute threads of a rank, where launch.threads is auto"},
    {"NCCL_*, UCX_*, OMPI_MCA_*", "go to the ranks on other hosts"},
    {"TMPDIR", "for files of mpirun and of batch scripts"},
}};

constexpr std::array<Entry, 8> kFiles = {{
    {"runs/NAME/config.yaml", "all settings of a run, to repeat it"},
    {"runs/NAME/metrics.jsonl", "what happened, a line each"},
    {"runs/NAME/checkpoints/", "step-…, and the links last and best"},
    {"runs/NAME/report.html, results.json", "what the run ended with"},
    {"runs/NAME/postmortem.json", "which rank failed, where, and how to go on"},
    {"runs/NAME/STOP", "makes the run stop with a checkpoint when it appears"},
    {"~/.config/chexnet-train/patients.key",
     "key of pseudonyms of patients: keep it, none can be found again without"},
    {"~/.cache/chexnet-train/", "indexes of archives, passed self-tests"},
}};

template <size_t count>
void man_entries(const char* title, const std::array<Entry, count>& entries) {
  std::cout << ".SH " << title << "\n";
  for (const auto& [what, text] : entries)
    std::cout << ".TP\n\\fB" << troff(what) << "\\fR\n\\&" << troff(text)
              << "\n";
}

void man_page(const CLI::App& app) {
  std::cout << ".TH CHEXNET\\-TRAIN 1 \"\" \"chexnet\\-train " CHEXNET_VERSION
               "\" \"User Commands\"\n.SH NAME\nchexnet\\-train \\- "
            << troff(app.get_description())
            << "\n.SH SYNOPSIS\n\\fBchexnet\\-train\\fR \\fICOMMAND\\fR "
               "[\\fIOPTIONS\\fR]\n";
  std::cout << ".SH OPTIONS\n";
  man_options(app);
  man_entries("EXAMPLES", kExamples);
  std::cout << ".SH EXIT STATUS\n" << troff(app.get_footer()) << "\n";
  man_entries("ENVIRONMENT", kVariables);
  man_entries("FILES", kFiles);
  std::cout << ".SH COMMANDS\n";
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

// What may stand where no option does: commands, or a fixed set of words. ""
// are files.
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
  for (const auto& option : config_options()) std::cout << option.key << "= ";
  std::cout << R"('
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    return
  fi
)";
}

void completion(const CLI::App& app) {
  std::cout
      << R"(# bash completion for chexnet-train, printed by `chexnet-train generate completion`
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
