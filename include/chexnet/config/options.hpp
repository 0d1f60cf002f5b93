// The one table of options. Parsing, --set, --print-config, --help,
// docs/config.md, did-you-mean and the comparison of a resumed run's config all
// walk it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

// A member whose type has a text form: one of `names`, or with no names
// whatever `set` accepts. `set` returns false for other text. Refers to the
// Config it was made from.
struct NamedValue {
  Strings names;
  std::function<std::string()> get;
  std::function<bool(const std::string&)> set;
  const char* known = "";  // without names: the forms that `set` accepts
};
// The same for a list.
struct NamedList {
  Strings names;
  std::function<Strings()> get;
  std::function<bool(const Strings&)> set;
  const char* known = "";
};

// An integer that is 0, and printed "auto", where it is left to the program.
struct AutoInteger {
  int64_t* value;
};

// The member that a key sets, inside a Config that must outlive it.
using FieldRef = std::variant<bool*, int64_t*, double*, std::optional<int64_t>*,
                              std::optional<double>*, AutoInteger, std::string*,
                              Strings*, Doubles*, NamedValue, NamedList>;

// Who is shown a key. kCommon: everybody; kRare: who asks for all keys;
// kHidden: who names it.
enum class Tier { kCommon, kRare, kHidden };

// The effect of another value of a key.
enum class Effect {
  kAnotherRun,    // a resume may not change it
  kOtherResults,  // it may, and from there on what is learned or scored differs
  kNone,          // it may; at most sums round differently
};

struct ConfigOption {
  struct Limits {
    double min, max;  // both allowed
  };

  std::string key;  // dotted, as in --set
  FieldRef (*field)(Config&);
  std::string help;
  Strings choices = {};  // empty = any value of the type
  std::optional<Limits> limits = {};
  bool is_path = false;  // knows ${VAR:-default} and ~
  Effect effect = Effect::kAnotherRun;
  Tier tier = Tier::kRare;
};

const std::vector<ConfigOption>& config_options();
const ConfigOption* find_option(const std::string& key);  // null when unknown
std::vector<std::string> option_keys();
// The key that alone ends with this word, or that other programs call so; "".
std::string key_of_word(std::string word);

// A former key, or "key=value" a former value, and the message about it.
struct RemovedName {
  std::string name, instead;
};
const std::vector<RemovedName>& removed_names();
// "now data.fold: 1/5"; empty for what was never a name.
std::string written_instead(const std::string& name);
// The keys that a word which is none may mean, for its error.
std::string likely_keys(const std::string& key);
// "unknown key 'x'. Hint: ...": the key that replaces it, or the nearest keys.
std::string unknown_key_text(const std::string& key);

// Whether its values are text, of one of the choices too, or a list of it.
bool holds_text(const ConfigOption& option);

// The value as YAML flow text ("0.1", "[a, b]", quoted where needed); equal
// values give equal text.
std::string option_text(const ConfigOption& option, const Config& config);
// "integer", "number", "true/false", "text", "list of text", "list of numbers";
// "integer or auto".
std::string option_type(const ConfigOption& option);

// The table, narrowed to keys that start with `prefix`; ConfigError when there
// are none. As markdown: the page docs/config.md, its rows alone with a prefix.
std::string options_markdown(const std::string& prefix = "");
// As terminal text; without a prefix the common keys, or all of them.
std::string options_help(const std::string& prefix = "", bool all = false);

}  // namespace chexnet
