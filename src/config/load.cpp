// Later wins: files in their order, then --set. Only keys in a file are
// assigned, so it need not repeat the defaults.
#include "chexnet/config/load.hpp"

#include <map>

#include "assign.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/config/strict_yaml.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

// Names in ${NAME} and ${NAME:-default}.
void note_variables(const std::string& text, Strings& names) {
  for (auto at = text.find("${"); at != std::string::npos;
       at = text.find("${", at + 2)) {
    const auto end = text.find_first_of("}:", at);
    names.push_back(
        text.substr(at + 2, end == std::string::npos ? end : end - at - 2));
  }
}

void assign_all(Config& config, const std::map<std::string, YamlValue>& values,
                Strings* variables) {
  for (const auto& [key, value] : values) {
    const ConfigOption* option = find_option(key);
    if (option == nullptr)
      throw ConfigError("[config] {}: {}", value.place, unknown_key_text(key));
    assign(config, *option, value);
    if (option->is_path && variables != nullptr)
      for (const auto& item : value.items) note_variables(item, *variables);
  }
}

void set_all(Config& config, const std::vector<std::string>& assignments,
             Strings* variables) {
  for (const auto& assignment : assignments) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos)
      config_error("--set " + assignment, "no '='",
                   "write --set key=value, as in --set train.lr=1e-3");
    const std::string key = assignment.substr(0, equals);
    const std::string place = "--set " + key;
    // The text after '=' is YAML too, so lists work: --set data.images=[a,b].
    auto values = read_strict_yaml(
        place, "\"" + key + "\": " + assignment.substr(equals + 1));
    // A table gives keys below this one, a second line another key.
    if (values.size() != 1 || !values.contains(key))
      config_error(place, "not a value or a list",
                   "write one key each, as in --set train.lr=1e-3");
    YamlValue value = values[key];
    value.place = place;
    assign_all(config, {{key, value}}, variables);
  }
}

}  // namespace

Config load_config_text(const std::string& origin, const std::string& text,
                        const Strings& assignments, Strings* variables,
                        const ConfigOverride& last) {
  Config config;
  assign_all(config, read_strict_yaml(origin, text), variables);
  set_all(config, assignments, variables);
  if (last) last(config);
  return config;
}

Config load_config(const std::vector<std::filesystem::path>& files,
                   const Strings& assignments, Strings* variables,
                   const ConfigOverride& last) {
  Config config;
  for (const auto& file : files)
    assign_all(config, read_strict_yaml_file(file), variables);
  set_all(config, assignments, variables);
  if (last) last(config);
  return config;
}

}  // namespace chexnet
