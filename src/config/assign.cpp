#include "assign.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string_view>

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "overloaded.hpp"

namespace chexnet {
namespace {

// The others are mapped into memory, or belong to one machine.
constexpr std::array<std::string_view, 7> kMayBeRemote = {
    "data.images",       "data.manifest.path", "data.train_list",
    "data.val_list",     "data.test_list",     "data.exclude",
    "data.finding_names"};

std::string store_problem(const std::string& key, const std::string& path) {
  if (key == "run.dir") return run_folder_problem(path);
  const bool may_be_remote =
      std::ranges::find(kMayBeRemote, key) != kMayBeRemote.end();
  return may_be_remote ? other_store_problem(path) : object_store_problem(path);
}

template <class Number>
bool parse_number(std::string_view text, Number& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto number = parsed_number<Number>(text);
  if (number) out = *number + Number{0};  // of -0 that is 0
  return number.has_value();
}

// "1e3" and "64_000_000" are integers to people.
bool parse_integer(const std::string& text, int64_t& out) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  if (parse_number(digits, out)) return true;

  constexpr double kExact = 9e15;  // doubles hold every integer below
  double number = 0;
  if (!parse_number(digits, number) || number != std::floor(number) ||
      std::abs(number) > kExact)
    return false;
  out = static_cast<int64_t>(number);
  return true;
}

std::string range_text(const ConfigOption::Limits& limits) {
  std::ostringstream text;
  text << "between " << limits.min << " and " << limits.max;
  return text.str();
}

// A visitor of FieldRef: one function for each type that a member can have.
class Assignment {
 public:
  Assignment(const ConfigOption& option, const YamlValue& value)
      : option_(option),
        value_(value),
        first_(value.items.empty() ? "" : value.items.front()) {}

  void operator()(bool* flag) const {
    const std::string text = scalar();
    if (text != "true" && text != "false") wrong(text);
    *flag = text == "true";
  }

  void operator()(int64_t* integer) const {
    const std::string text = scalar();
    if (!parse_integer(text, *integer)) wrong(text);
    check_range(static_cast<double>(*integer), text);
  }

  void operator()(double* number) const {
    const std::string text = scalar();
    if (!parse_number(text, *number)) wrong(text);
    check_range(*number, text);
  }

  template <class Number>
  void operator()(std::optional<Number>* number) const {
    if (scalar() == "auto") {
      number->reset();
      return;
    }
    Number given{};
    (*this)(&given);
    *number = given;
  }

  void operator()(const AutoInteger& integer) const {
    if (scalar() == "auto")
      *integer.value = 0;
    else
      (*this)(integer.value);
  }

  void operator()(std::string* text) const { *text = resolved(scalar()); }

  void operator()(Strings* list) const {
    list->clear();
    for (const auto& item : items()) list->push_back(resolved(item));
  }

  void operator()(Doubles* numbers) const {
    numbers->clear();
    for (const auto& item : value_.items) {
      double parsed = 0;
      if (!parse_number(item, parsed)) wrong(item);
      check_range(parsed, item);
      numbers->push_back(parsed);
    }
  }

  void operator()(const NamedValue& named) const {
    const std::string text = resolved(scalar());
    // Choices are checked by now: this type has another grammar.
    if (!named.set(text)) unknown(text, named.known);
  }

  void operator()(const NamedList& named) const {
    Strings names;
    std::string given;
    for (const auto& item : items()) {
      names.push_back(resolved(item));
      given += (given.empty() ? "" : ", ") + item;
    }
    if (!named.set(names)) unknown(given, named.known);
  }

 private:
  [[noreturn]] void wrong(const std::string& given) const {
    config_error(value_.place,
                 formatted("'{}' wants {}, not '{}'", option_.key,
                           option_type(option_), given),
                 option_.help);
  }

  [[noreturn]] void unknown(const std::string& given,
                            const std::string& hint) const {
    config_error(value_.place,
                 formatted("'{}' = '{}' is not known", option_.key, given),
                 hint);
  }

  std::string scalar() const {
    if (value_.is_list) wrong("a list");
    return first_;
  }

  std::string hint_for(const std::string& item, const Strings& choices) const {
    std::string hint = written_instead(option_.key + "=" + item);
    if (hint.empty())
      hint = "one of " + nearest_names(item, choices, choices.size());
    return hint;
  }

  // An empty scalar is an empty list.
  Strings items() const {
    if (!value_.is_list && first_.empty()) return {};
    return value_.items;
  }

  void check_range(double number, const std::string& given) const {
    const auto& limits = option_.limits;
    const bool inside =
        !limits || (number >= limits->min && number <= limits->max);
    if (std::isfinite(number) && inside) return;
    std::string hint = written_instead(option_.key + "=" + given);
    if (hint.empty())
      hint = limits ? range_text(*limits) + "; " + option_.help : option_.help;
    config_error(value_.place,
                 formatted("'{}' = {} is out of range", option_.key, given),
                 hint);
  }

  // One of the choices where there are some; a path with its variables
  // replaced.
  std::string resolved(const std::string& item) const {
    const Strings& choices = option_.choices;
    if (!choices.empty() && std::ranges::find(choices, item) == choices.end())
      unknown(item, hint_for(item, choices));
    if (option_.key == "data.s3.endpoint") {
      const std::string problem = endpoint_problem(item);
      if (!problem.empty())
        throw ConfigError("[config] {}: {}", value_.place, problem);
    }
    if (!option_.is_path) return item;
    try {
      std::string path = expanded_path(item);
      const std::string problem = store_problem(option_.key, path);
      if (!problem.empty()) throw ConfigError(problem);
      return path;
    } catch (const ConfigError& e) {
      throw ConfigError("[config] {}: '{}': {}", value_.place, option_.key,
                        e.what());
    }
  }

  const ConfigOption& option_;
  const YamlValue& value_;
  std::string first_;
};

}  // namespace

void config_error(const std::string& place, const std::string& what,
                  const std::string& hint) {
  throw ConfigError("[config] {}: {}. Hint: {}", place, what, hint);
}

void assign(Config& config, const ConfigOption& option,
            const YamlValue& value) {
  std::visit(Assignment(option, value), option.field(config));
}

}  // namespace chexnet
