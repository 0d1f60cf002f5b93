// One value of a file or of --set into its member.
#pragma once

#include "chexnet/config/options.hpp"
#include "chexnet/config/strict_yaml.hpp"

namespace chexnet {

// ConfigError with origin, key and the allowed values when the value does not
// fit.
void assign(Config& config, const ConfigOption& option, const YamlValue& value);

// "[config] place: what. Hint: hint".
[[noreturn]] void config_error(const std::string& place,
                               const std::string& what,
                               const std::string& hint);

}  // namespace chexnet
