// The one table of options. Parsing, --set, --print-config, --help, docs/config.md, did-you-mean
// and the comparison of a resumed run's config all walk it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

using FieldRef = std::variant<bool*, std::int64_t*, double*, std::string*, Strings*, Doubles*>;

struct ConfigOption {
  enum class Kind { kPlain, kPath };  // paths know ${VAR:-default} and ~

  std::string key;  // dotted, as in --set
  FieldRef (*field)(Config&);
  std::string help;
  Strings choices;          // empty = any text
  double min = 0, max = 0;  // both 0 = unlimited
  Kind kind = Kind::kPlain;
  bool may_change_on_resume = false;
  bool has_auto = false;  // a number that may be "auto", kept as -1
};

const std::vector<ConfigOption>& config_options();
const ConfigOption* find_option(const std::string& key);  // null when unknown
std::vector<std::string> option_keys();

// The value as YAML flow text ("0.1", "[a, b]", quoted where needed); equal values give equal text.
std::string option_text(const ConfigOption& option, const Config& config);
// "integer", "number", "true/false", "text", "list of text", "list of numbers".
std::string option_type(const ConfigOption& option);

// The table as a markdown page (docs/config.md).
std::string options_markdown();
// The table as terminal text, narrowed to keys that start with `prefix`.
std::string options_help(const std::string& prefix = "");

}  // namespace chexnet
