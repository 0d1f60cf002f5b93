#include "chexnet/config/load.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "chexnet/config/options.hpp"
#include "chexnet/config/strict_yaml.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"

namespace chexnet {
namespace {

[[noreturn]] void fail(const std::string& place, const std::string& what, const std::string& hint) {
  throw ConfigError("[config] " + place + ": " + what + ". Hint: " + hint);
}

template <class Number>
bool parse_number(std::string_view text, Number& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && !text.empty();
}

// "1e3" and "64_000_000" are integers to people.
bool parse_integer(const std::string& text, std::int64_t& out) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  if (parse_number(digits, out)) return true;
  double number = 0;
  if (!parse_number(digits, number) || number != std::floor(number) || std::abs(number) > 9e15)
    return false;
  out = static_cast<std::int64_t>(number);
  return true;
}

// "between 0 and 1000"; empty where a option has no limits.
std::string range_text(const ConfigOption& option) {
  if (option.min == 0 && option.max == 0) return "";
  std::ostringstream text;
  text << "between " << option.min << " and " << option.max;
  return text.str();
}

void assign(Config& config, const ConfigOption& option, const YamlValue& value) {
  const auto wrong = [&](const std::string& given) {
    fail(value.place, "'" + option.key + "' wants " + option_type(option) + ", not '" + given + "'",
         option.help);
  };
  const auto in_range = [&](double number) {
    const std::string range = range_text(option);
    if (!std::isfinite(number) || (!range.empty() && (number < option.min || number > option.max)))
      fail(value.place, "'" + option.key + "' = " + value.items.front() + " is out of range",
           range.empty() ? option.help : range + "; " + option.help);
  };
  const auto text_of = [&](const std::string& item) {
    if (!option.choices.empty() && std::ranges::find(option.choices, item) == option.choices.end())
      fail(value.place, "'" + option.key + "' = '" + item + "' is not known",
           "one of " + nearest_names(item, option.choices, option.choices.size()));
    try {
      if (option.kind != ConfigOption::Kind::kPath) return item;
      const std::string path = expanded_path(item);
      const std::string problem = object_store_problem(path);
      if (!problem.empty() && option.key != "data.images") throw ConfigError(problem);
      return path;
    } catch (const ConfigError& e) {
      throw ConfigError("[config] " + value.place + ": '" + option.key + "': " + e.what());
    }
  };
  const FieldRef field = option.field(config);
  const bool wants_list =
      std::holds_alternative<Strings*>(field) || std::holds_alternative<Doubles*>(field);
  if (value.is_list && !wants_list) wrong("a list");
  const std::string first = value.items.empty() ? "" : value.items.front();
  if (auto* const* flag = std::get_if<bool*>(&field)) {
    if (first != "true" && first != "false") wrong(first);
    **flag = first == "true";
  } else if (auto* const* integer = std::get_if<std::int64_t*>(&field)) {
    if (option.has_auto && first == "auto") {
      **integer = -1;
    } else {
      if (!parse_integer(first, **integer)) wrong(first);
      in_range(static_cast<double>(**integer));
    }
  } else if (auto* const* number = std::get_if<double*>(&field)) {
    if (option.has_auto && first == "auto") {
      **number = -1;
    } else {
      if (!parse_number(first, **number)) wrong(first);
      in_range(**number);
    }
  } else if (auto* const* text = std::get_if<std::string*>(&field)) {
    **text = text_of(first);
  } else if (auto* const* list = std::get_if<Strings*>(&field)) {
    (*list)->clear();
    for (const auto& item : value.items)
      if (!(item.empty() && !value.is_list)) (*list)->push_back(text_of(item));
  } else if (auto* const* numbers = std::get_if<Doubles*>(&field)) {
    (*numbers)->clear();
    for (const auto& item : value.items) {
      double parsed = 0;
      if (!parse_number(item, parsed)) wrong(item);
      (*numbers)->push_back(parsed);
    }
  }
}

// Names in ${NAME} and ${NAME:-default}.
void note_variables(const std::string& text, Strings& names) {
  for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2)) {
    const auto end = text.find_first_of("}:", at);
    names.push_back(text.substr(at + 2, end == std::string::npos ? end : end - at - 2));
  }
}

void assign_all(Config& config, const std::map<std::string, YamlValue>& values) {
  for (const auto& [key, value] : values) {
    const ConfigOption* option = find_option(key);
    if (option == nullptr)
      fail(value.place, "unknown key '" + key + "'",
           "nearest are " + nearest_names(key, option_keys()));
    assign(config, *option, value);
    if (option->kind == ConfigOption::Kind::kPath)
      for (const auto& item : value.items) note_variables(item, config.launch.variables);
  }
}

}  // namespace

std::string expanded_path(const std::string& text) {
  std::string out;
  std::size_t at = 0;
  for (auto open = text.find("${"); open != std::string::npos; open = text.find("${", at)) {
    const auto close = text.find('}', open);
    if (close == std::string::npos) throw ConfigError("'${' without '}' in '" + text + "'");
    out += text.substr(at, open - at);
    const std::string inside = text.substr(open + 2, close - open - 2);
    const auto fallback = inside.find(":-");
    const std::string name = inside.substr(0, fallback);
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0')
      out += value;
    else if (fallback != std::string::npos)
      out += inside.substr(fallback + 2);
    else
      throw ConfigError("environment variable " + name +
                        " is not set. Hint: export it, or write ${" + name + ":-default}");
    at = close + 1;
  }
  out += text.substr(at);
  if (out != "~" && !out.starts_with("~/")) return out;
  const char* home = std::getenv("HOME");
  if (home == nullptr) throw ConfigError("HOME is not set, so '~' has no meaning");
  return home + out.substr(1);
}

namespace {

void set_all(Config& config, const std::vector<std::string>& assignments) {
  for (const auto& assignment : assignments) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos)
      fail("--set " + assignment, "no '='", "write --set key=value, as in --set train.lr=1e-3");
    const std::string key = assignment.substr(0, equals);
    const std::string place = "--set " + key;
    // The text after '=' is YAML too, so lists work: --set data.images=[a,b].
    auto values = read_strict_yaml(place, "value: " + assignment.substr(equals + 1));
    YamlValue value = values["value"];
    value.place = place;
    assign_all(config, {{key, value}});
  }
}

}  // namespace

Config load_config_text(const std::string& origin, const std::string& text,
                        const std::vector<std::string>& assignments) {
  Config config;
  assign_all(config, read_strict_yaml(origin, text));
  set_all(config, assignments);
  return config;
}

Config load_config(const std::vector<std::filesystem::path>& files,
                   const std::vector<std::string>& assignments) {
  Config config;
  for (const auto& file : files) {
    std::string text;
    try {
      text = read_text(file);
    } catch (const Error& e) {
      throw ConfigError(e.what());
    }
    assign_all(config, read_strict_yaml(file.string(), text));
  }
  set_all(config, assignments);
  return config;
}

void check_for_training(const Config& config) {
  const auto require = [](bool present, const std::string& key, const std::string& hint) {
    if (!present) fail(key, "this key is required and missing", hint);
  };
  require(!config.data.manifest.path.empty(), "data.manifest.path",
          "name the table of images and labels, e.g. Data_Entry_2017.csv");
  require(!config.data.images.empty(), "data.images", "name the folder(s) with the images");
  require(!config.model.weights.empty(), "model.weights",
          "a .safetensors file, or 'none' for a random start");
  if (config.data.crop > config.data.resize)
    fail("data.crop", "larger than data.resize", "choose crop <= resize");
  if (config.data.eval_resize != 0 && config.data.crop > config.data.eval_resize)
    fail("data.crop", "larger than data.eval_resize", "choose crop <= eval_resize");
  if (config.data.random_crop && config.data.random_resized_crop)
    fail("data.random_crop", "set together with data.random_resized_crop", "choose one");
  if (config.data.mean.size() != 3 || config.data.std.size() != 3)
    fail("data.mean", "data.mean and data.std need three numbers each", "one per input channel");
  if (std::ranges::any_of(config.data.std, [](double s) { return s <= 0; }))
    fail("data.std", "must be positive", "ImageNet's are 0.229, 0.224, 0.225");
  if (config.train.epochs <= 0 && config.train.max_steps <= 0)
    fail("train.epochs", "0 without train.max_steps: there is nothing to do", "set one of the two");
  if (config.train.epochs > 0 && config.train.warmup_epochs >= config.train.epochs)
    fail("train.warmup_epochs", "not less than train.epochs: the rate never arrives",
         "choose a shorter warm-up");
  if (config.launch.wire != "fp32" && config.train.precision == "fp64")
    fail("launch.wire", "16-bit gradients with fp64 training", "set launch.wire=fp32");
}

std::string config_yaml(const Config& config) {
  std::string text;
  Strings open;  // the sections written so far
  for (const auto& option : config_options()) {
    Strings parts;
    std::istringstream key(option.key);
    for (std::string part; std::getline(key, part, '.');) parts.push_back(part);
    std::size_t same = 0;
    while (same < open.size() && same + 1 < parts.size() && open[same] == parts[same]) ++same;
    open.resize(same);
    for (std::size_t i = same; i + 1 < parts.size(); ++i) {
      text += std::string(2 * i, ' ') + parts[i] + ":\n";
      open.push_back(parts[i]);
    }
    text += std::string(2 * (parts.size() - 1), ' ') + parts.back() + ": " +
            option_text(option, config) + "\n";
  }
  return text;
}

Config without_places(Config config) {
  Config unset;
  config.run = unset.run;
  config.launch = unset.launch;
  config.data.s3 = unset.data.s3;
  for (const auto& option : config_options()) {
    if (option.kind != ConfigOption::Kind::kPath) continue;
    const FieldRef to = option.field(config), from = option.field(unset);
    if (auto* const* path = std::get_if<std::string*>(&to)) **path = *std::get<std::string*>(from);
    if (auto* const* paths = std::get_if<Strings*>(&to)) **paths = *std::get<Strings*>(from);
  }
  return config;
}

std::string object_store_problem(const std::string& path) {
  const auto scheme = path.find("://");
  if (scheme == std::string::npos || path.find('/') < scheme) return {};
  return "'" + path +
         "' lies in an object store, and only data.images may. Hint: tables, lists, weights and "
         "all that is written must lie in a file system";
}

std::vector<std::string> resume_conflicts(const Config& before, const Config& now) {
  std::vector<std::string> lines;
  for (const auto& option : config_options()) {
    const auto was = option_text(option, before);
    const auto is = option_text(option, now);
    if (was != is && !option.may_change_on_resume && is != "auto")
      lines.push_back(option.key + ": " + was + " -> " + is);
  }
  return lines;
}

}  // namespace chexnet
