#include "help_config.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "chexnet/config/options.hpp"

namespace chexnet {
namespace {

// The option decides what may be shown, not the look of its value: a number, a
// switch, one of the choices that --help prints anyway. So a password under a
// wrong key is a TEXT.

bool is_any_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

bool holds_switch(const ConfigOption& option) {
  Config scratch;
  return std::holds_alternative<bool*>(option.field(scratch));
}

// Whether the value is one that the program gives to choose from: a config may
// have been edited by hand, so we check the value itself.
bool may_be_shown(const ConfigOption& option, const std::string& value) {
  static constexpr std::array kChoices = {
      "",     "none", "auto",   "off",  "ib",  "opa",    "tcp",
      "fail", "skip", "ignore", "zero", "one", "smooth", "ucx"};
  if (std::ranges::find(kChoices, value) != kChoices.end()) return true;
  if (holds_text(option))
    return std::ranges::find(option.choices, value) != option.choices.end() ||
           (option.key == "data.corrupt" && is_any_number(value));
  return holds_switch(option) ? value == "true" || value == "false"
                              : is_any_number(value);
}

std::string shown(const ConfigOption& option, const YAML::Node& value) {
  const auto quoted = [](const std::string& text) {
    return text.empty() || text == "off" ? '"' + text + '"' : text;
  };
  if (value.IsNull()) return "~";
  if (value.IsScalar())
    return may_be_shown(option, value.Scalar()) ? quoted(value.Scalar())
                                                : "TEXT";

  std::string items;
  for (const auto& item : value) {
    if (!item.IsScalar() || !may_be_shown(option, item.Scalar()))
      return "[" + std::to_string(value.size()) + " items]";
    items += (items.empty() ? "" : ", ") + quoted(item.Scalar());
  }
  return "[" + items + "]";
}

bool is_section(const std::string& key) {
  return std::ranges::any_of(config_options(), [&](const ConfigOption& k) {
    return k.key.starts_with(key + ".");
  });
}

// Returns how many keys are no options.
int put(const YAML::Node& map, const std::string& section, std::string& out) {
  int unknown = 0;
  const auto depth = static_cast<size_t>(std::ranges::count(section, '.'));
  for (const auto& entry : map) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const ConfigOption* option = find_option(section + name);
    const std::string line = std::string(2 * depth, ' ') + name + ":";
    if (entry.second.IsMap() && is_section(section + name)) {
      out += line + "\n";
      unknown += put(entry.second, section + name + ".", out);
    } else if (option != nullptr && !entry.second.IsMap()) {
      out += line + " " + shown(*option, entry.second) + "\n";
    } else {
      ++unknown;
    }
  }
  return unknown;
}

YAML::Node parsed(const std::string& yaml) {
  try {
    const YAML::Node root = YAML::Load(yaml);
    return root.IsMap() ? root : YAML::Node();
  } catch (const YAML::Exception&) {
    return {};
  }
}

YAML::Node value_of(const YAML::Node& root, std::string_view key) {
  const auto dot = key.find('.');
  const YAML::Node inner =
      root.IsMap() ? root[std::string(key.substr(0, dot))] : YAML::Node();
  if (!inner.IsDefined()) return {};
  return dot == std::string_view::npos ? inner
                                       : value_of(inner, key.substr(dot + 1));
}

// "TOKENX=hunter2", "icu-node7:2,icu-node8".
void hide_words(const std::string& argument, Redaction& redaction) {
  if (argument.starts_with('-') && argument.find('=') == std::string::npos)
    return;
  for (size_t at = 0; at < argument.size(); ++at) {
    const auto end =
        std::min(argument.find_first_of("=,: ", at), argument.size());
    const std::string word = argument.substr(at, end - at);
    if (!word.starts_with('-') && !word_of_program(word))
      redaction.hide_path(word, "TEXT");
    at = end;
  }
}

void hide_value(const ConfigOption& option, const std::string& value,
                Redaction& redaction) {
  if (may_be_shown(option, value)) return;
  if (option.key == "run.name" || option.key == "run.dir")
    return redaction.hide_path(value, "RUN");
  if (option.key == "data.s3.profile") return redaction.hide(value, "PROFILE");
  if (option.key == "launch.mpi_args" || option.key == "run.after_checkpoint")
    return hide_words(value, redaction);
  if (option.key == "data.s3.endpoint") {
    const auto scheme = value.find("://");
    const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
    redaction.hide(
        value.substr(begin, value.find_first_of(":/", begin) - begin), "PLACE");
  }
  const bool place = option.is_path || value.find('/') != std::string::npos;
  const bool of_system = value.starts_with("/usr/");
  if (place && !of_system && !word_of_program(value))
    redaction.hide_path(value, "PATH");
}

}  // namespace

std::string config_for_help(const std::string& yaml) {
  const YAML::Node root = parsed(yaml);
  if (!root.IsMap()) return "# no YAML\n";
  std::string out;
  const int unknown = put(root, "", out);
  if (unknown > 0)
    out += "# and " + std::to_string(unknown) + " keys that are not known\n";
  return out;
}

void hide_config(const std::string& yaml, Redaction& redaction) {
  const YAML::Node root = parsed(yaml);
  for (const ConfigOption& option : config_options()) {
    if (!holds_text(option)) continue;
    const YAML::Node value = value_of(root, option.key);
    if (value.IsScalar()) hide_value(option, value.Scalar(), redaction);
    for (const auto& item : value)
      if (item.IsScalar()) hide_value(option, item.Scalar(), redaction);
  }
}

}  // namespace chexnet
