// The table of options as people read it: docs/config.md and --help.
#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

std::string meaning_of(const ConfigOption& option) {
  if (option.choices.empty()) return option.help;
  std::string text = option.help + " (one of ";
  for (size_t i = 0; i < option.choices.size(); ++i)
    text += (i ? ", " : "") + option.choices[i];
  return text + ")";
}

std::vector<ConfigOption> options_of(Tier tier) {
  std::vector<ConfigOption> found;
  for (const auto& option : config_options())
    if (option.tier == tier) found.push_back(option);
  return found;
}

std::vector<ConfigOption> options_with(const std::string& prefix) {
  std::vector<ConfigOption> found;
  for (const auto& option : config_options())
    if (option.key.starts_with(prefix) &&
        (option.tier != Tier::kHidden || option.key == prefix))
      found.push_back(option);
  if (found.empty())
    throw ConfigError("[config] no key starts with '{}'. Hint: nearest are {}",
                      prefix, likely_keys(prefix));
  return found;
}

// A bar would end the cell of a table.
std::string in_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

std::string mark_of(Effect effect) {
  if (effect == Effect::kNone) return "†";
  return effect == Effect::kOtherResults ? "*" : "";
}

constexpr const char* kIntroduction =
    "# Config keys\n\n"
    "Printed by `chexnet-train config --markdown`; a test keeps this page "
    "equal to the program.\n\n"
    "Files are strict YAML: an unknown or doubled key, an alias or a wrong "
    "type is refused with\n"
    "file and line. Later files override earlier ones (`train base.yaml "
    "site.yaml exp.yaml`), and\n"
    "`--set key=value` overrides all. Paths may use `~` and `${VAR}` or "
    "`${VAR:-default}`; a\n"
    "relative path is relative to the working folder. A resume may change a "
    "key "
    "marked with *, and\n"
    "one marked with † too, on which no result depends but for rounding: runs "
    "that differ in such\n"
    "keys alone are of one setting ([report.md](report.md)).\n\n";

std::string markdown_table(const std::vector<ConfigOption>& options) {
  std::string text = "| key | type | default | meaning |\n|---|---|---|---|\n";
  const Config defaults;
  for (const auto& option : options)
    text += "| `" + option.key + "`" + mark_of(option.effect) + " | " +
            option_type(option) + " | `" + option_text(option, defaults) +
            "` | " + in_cell(meaning_of(option)) + " |\n";
  return text;
}

}  // namespace

std::string options_markdown(const std::string& prefix) {
  if (!prefix.empty()) return markdown_table(options_with(prefix));
  return kIntroduction +
         ("## Common keys\n\n" + markdown_table(options_of(Tier::kCommon)) +
          "\n## All other keys\n\n" + markdown_table(options_of(Tier::kRare)));
}

std::string options_help(const std::string& prefix, bool all) {
  std::string text;
  const Config defaults;
  const bool common = prefix.empty() && !all;
  for (const auto& option :
       common ? options_of(Tier::kCommon) : options_with(prefix))
    text += "  " + option.key + " = " + option_text(option, defaults) + "  (" +
            option_type(option) + ")\n      " + meaning_of(option) + "\n";
  return text;
}

}  // namespace chexnet
