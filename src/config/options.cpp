#include "chexnet/config/options.hpp"

#include <algorithm>

#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "option_table.hpp"
#include "overloaded.hpp"

namespace chexnet {
namespace {

std::vector<ConfigOption> all_tables() {
  auto all = joined({run_table(), data_table(), privacy_table(), train_table(),
                     eval_table(), launch_table()});

  // An enum's names are said once, beside the enum.
  Config scratch;
  for (auto& option : all) {
    const FieldRef field = option.field(scratch);
    if (const auto* value = std::get_if<NamedValue>(&field))
      option.choices = value->names;
    if (const auto* list = std::get_if<NamedList>(&field))
      option.choices = list->names;
  }
  return all;
}

// Text that YAML would read as something else stands in quotes, where the
// escapes of printable() are also YAML's.
std::string quoted(const std::string& text) {
  static const Strings kReserved = {"null", "~",  "true", "false",
                                    "yes",  "no", "on",   "off"};
  const bool plain =
      !text.empty() && printable(text) == text &&
      text.find_first_of(":#,[]{}&*!|>'\"%@`\\ \t\n") == std::string::npos &&
      text.find_first_of("-?0123456789.+") != 0 &&
      std::ranges::find(kReserved, text) == kReserved.end();
  const bool path =
      !text.empty() && printable(text) == text &&
      (text[0] == '.' || text[0] == '/') &&
      text.find_first_of(":#,[]{}'\" \t\n\\") == std::string::npos &&
      text.find('/') != std::string::npos;
  if (plain || path) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return printable(out) + '"';
}

template <class List, class Text>
std::string flow_list(const List& list, Text text) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i)
    out += (i ? ", " : "") + text(list[i]);
  return out + "]";
}

FieldRef scratch_field(const ConfigOption& option) {
  static Config scratch;  // looked at for its types only
  return option.field(scratch);
}

// A member of a type with parse(), text() and known().
template <class Parsed>
FieldRef parsed_field(Parsed& member) {
  return NamedValue{.names = {},
                    .get = [&member] { return member.text(); },
                    .set =
                        [&member](const std::string& text) {
                          const auto found = Parsed::parse(text);
                          if (found) member = *found;
                          return found.has_value();
                        },
                    .known = Parsed::known()};
}

}  // namespace

std::vector<ConfigOption> joined(
    const std::vector<std::vector<ConfigOption>>& parts) {
  std::vector<ConfigOption> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

FieldRef field_ref(StageChoice& member) { return parsed_field(member); }

FieldRef field_ref(CorruptChoice& member) { return parsed_field(member); }

FieldRef field_ref(FoldChoice& member) { return parsed_field(member); }

FieldRef field_ref(UncertainChoice& member) {
  return NamedList{.names = {},
                   .get = [&member] { return member.list(); },
                   .set =
                       [&member](const Strings& list) {
                         const auto found = UncertainChoice::parse(list);
                         if (found) member = *found;
                         return found.has_value();
                       },
                   .known = UncertainChoice::known()};
}

FieldRef field_ref(NetworkChoice& member) { return parsed_field(member); }

const std::vector<ConfigOption>& config_options() {
  static const std::vector<ConfigOption> kTable = all_tables();
  return kTable;
}

const ConfigOption* find_option(const std::string& key) {
  const auto found =
      std::ranges::find(config_options(), key, &ConfigOption::key);
  return found == config_options().end() ? nullptr : &*found;
}

std::vector<std::string> option_keys() {
  std::vector<std::string> keys;
  for (const auto& option : config_options()) keys.push_back(option.key);
  return keys;
}

bool holds_text(const ConfigOption& option) {
  const FieldRef field = scratch_field(option);
  return std::holds_alternative<std::string*>(field) ||
         std::holds_alternative<Strings*>(field) ||
         std::holds_alternative<NamedValue>(field) ||
         std::holds_alternative<NamedList>(field);
}

std::string option_text(const ConfigOption& option, const Config& config) {
  Config copy = config;  // `field` wants to write
  return std::visit(
      Overloaded{
          [](const bool* v) { return std::string(*v ? "true" : "false"); },
          [](const int64_t* v) { return std::to_string(*v); },
          [](const double* v) { return number_text(*v); },
          [](const std::optional<int64_t>* v) {
            return *v ? std::to_string(**v) : std::string("auto");
          },
          [](const std::optional<double>* v) {
            return *v ? number_text(**v) : std::string("auto");
          },
          [](const AutoInteger& v) {
            return *v.value != 0 ? std::to_string(*v.value)
                                 : std::string("auto");
          },
          [](const std::string* v) { return quoted(*v); },
          [](const Strings* v) { return flow_list(*v, quoted); },
          [](const Doubles* v) {
            return flow_list(*v, [](double v) { return number_text(v); });
          },
          [](const NamedValue& v) { return quoted(v.get()); },
          [](const NamedList& v) { return flow_list(v.get(), quoted); }},
      option.field(copy));
}

std::string option_type(const ConfigOption& option) {
  return std::visit(
      Overloaded{
          [](const bool*) { return "true/false"; },
          [](const int64_t*) { return "integer"; },
          [](const double*) { return "number"; },
          [](const std::optional<int64_t>*) { return "integer or auto"; },
          [](const std::optional<double>*) { return "number or auto"; },
          [](const AutoInteger&) { return "integer or auto"; },
          [](const std::string*) { return "text"; },
          [](const Strings*) { return "list of text"; },
          [](const Doubles*) { return "list of numbers"; },
          [](const NamedValue&) { return "text"; },
          [](const NamedList&) { return "list of text"; }},
      scratch_field(option));
}

}  // namespace chexnet
