#include "chexnet/report/help_config.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "chexnet/config/knobs.hpp"

namespace chexnet {
namespace {

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

bool holds_text(const Knob& knob) {
  Config scratch;
  const FieldRef field = knob.field(scratch);
  return std::holds_alternative<std::string*>(field) || std::holds_alternative<Strings*>(field);
}

bool holds_switch(const Knob& knob) {
  Config scratch;
  return std::holds_alternative<bool*>(knob.field(scratch));
}

// Whether the value is one that the program gives to choose from: a config may have been edited by
// hand, so the value itself is looked at.
bool may_be_shown(const Knob& knob, const std::string& value) {
  static constexpr std::array kChoices = {"", "none", "auto", "off", "ib", "opa", "tcp", "ucx"};
  if (std::ranges::find(kChoices, value) != kChoices.end()) return true;
  if (holds_text(knob)) return std::ranges::find(knob.choices, value) != knob.choices.end();
  return holds_switch(knob) ? value == "true" || value == "false" : is_number(value);
}

std::string shown(const Knob& knob, const YAML::Node& value) {
  const auto quoted = [](const std::string& text) {
    return text.empty() || text == "off" ? '"' + text + '"' : text;
  };
  if (value.IsNull()) return "~";
  if (value.IsScalar()) return may_be_shown(knob, value.Scalar()) ? quoted(value.Scalar()) : "TEXT";

  std::string items;
  for (const auto& item : value) {
    if (!item.IsScalar() || !may_be_shown(knob, item.Scalar()))
      return "[" + std::to_string(value.size()) + " items]";
    items += (items.empty() ? "" : ", ") + quoted(item.Scalar());
  }
  return "[" + items + "]";
}

bool is_section(const std::string& key) {
  return std::ranges::any_of(knobs(), [&](const Knob& k) { return k.key.starts_with(key + "."); });
}

// Returns how many keys are no knobs.
int put(const YAML::Node& map, const std::string& section, std::string& out) {
  int unknown = 0;
  const auto depth = static_cast<std::size_t>(std::ranges::count(section, '.'));
  for (const auto& entry : map) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const Knob* knob = find_knob(section + name);
    const std::string line = std::string(2 * depth, ' ') + name + ":";
    if (entry.second.IsMap() && is_section(section + name)) {
      out += line + "\n";
      unknown += put(entry.second, section + name + ".", out);
    } else if (knob != nullptr && !entry.second.IsMap()) {
      out += line + " " + shown(*knob, entry.second) + "\n";
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
  const YAML::Node inner = root.IsMap() ? root[std::string(key.substr(0, dot))] : YAML::Node();
  if (!inner.IsDefined()) return {};
  return dot == std::string_view::npos ? inner : value_of(inner, key.substr(dot + 1));
}

// "TOKENX=hunter2", "icu-node7:2,icu-node8".
void hide_words(const std::string& argument, Redaction& redaction) {
  if (argument.starts_with('-') && argument.find('=') == std::string::npos) return;
  for (std::size_t at = 0; at < argument.size(); ++at) {
    const auto end = std::min(argument.find_first_of("=,: ", at), argument.size());
    const std::string word = argument.substr(at, end - at);
    if (!word.starts_with('-') && !word_of_program(word)) redaction.hide_path(word, "TEXT");
    at = end;
  }
}

void hide_value(const Knob& knob, const std::string& value, Redaction& redaction) {
  if (may_be_shown(knob, value)) return;
  if (knob.key == "run.name" || knob.key == "run.dir") return redaction.hide_path(value, "RUN");
  if (knob.key == "data.s3.profile") return redaction.hide(value, "PROFILE");
  if (knob.key == "launch.mpi_args") return hide_words(value, redaction);
  if (knob.key == "data.s3.endpoint") {
    const auto scheme = value.find("://");
    const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
    redaction.hide(value.substr(begin, value.find_first_of(":/", begin) - begin), "PLACE");
  }
  const bool place = knob.kind == Knob::Kind::kPath || value.find('/') != std::string::npos;
  const bool of_system = value.starts_with("/usr/");
  if (place && !of_system && !word_of_program(value)) redaction.hide_path(value, "PATH");
}

}  // namespace

std::string config_for_help(const std::string& yaml) {
  const YAML::Node root = parsed(yaml);
  if (!root.IsMap()) return "# no YAML\n";
  std::string out;
  const int unknown = put(root, "", out);
  if (unknown > 0) out += "# and " + std::to_string(unknown) + " keys that are not known\n";
  return out;
}

void hide_config(const std::string& yaml, Redaction& redaction) {
  const YAML::Node root = parsed(yaml);
  for (const Knob& knob : knobs()) {
    if (!holds_text(knob)) continue;
    const YAML::Node value = value_of(root, knob.key);
    if (value.IsScalar()) hide_value(knob, value.Scalar(), redaction);
    for (const auto& item : value)
      if (item.IsScalar()) hide_value(knob, item.Scalar(), redaction);
  }
}

}  // namespace chexnet
