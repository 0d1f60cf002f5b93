// Keys are "TYPE.KEY". A rate without its unit is refused: 25 may be Gbit/s to
// who wrote it and GB/s to who reads it.
#include "chexnet/tools/doctor/acceptance.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "chexnet/config/strict_yaml.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

const std::vector<std::string> kKeys = {
    "allreduce", "driver", "gpus", "hosts", "read", "self_test", "step"};

// `factor`: of the unit that a threshold is kept in.
struct Unit {
  std::string_view name;
  double factor;
};

[[noreturn]] void refuse(const YamlValue& value, const std::string& what) {
  throw ConfigError("[doctor] {}: {}", value.place, what);
}

double rate(const std::string& key, const YamlValue& value,
            const std::vector<Unit>& units) {
  const std::string text = value.items.empty() ? "" : value.items.front();
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string example = " of " + std::string(units.front().name);
  const auto require_rate = [&](bool is_rate) {
    if (is_rate) return;
    refuse(value, formatted("'{}' = '{}' is no rate. Hint: a number above 0{}",
                            key, text, example));
  };
  require_rate(error == std::errc() && number > 0 && std::isfinite(number));
  std::string unit(rest, end);
  unit.erase(0, unit.find_first_not_of(' '));
  for (const auto& known : units)
    if (unit == known.name) {
      require_rate(std::isfinite(number * known.factor));
      return number * known.factor;
    }
  std::string names;
  for (const auto& known : units)
    names += (names.empty() ? "" : " or ") + std::string(known.name);
  refuse(value, formatted("'{}' = '{}' has {} unit. Hint: {} behind the number",
                          key, text, unit.empty() ? "no" : "another", names));
}

int count(const std::string& key, const YamlValue& value) {
  const std::string text = value.items.empty() ? "" : value.items.front();
  if (text.empty() || text.size() > 4 ||
      text.find_first_not_of("0123456789") != std::string::npos)
    refuse(value,
           formatted("'{}' = '{}' is no count. Hint: a whole number of GPUs",
                     key, text));
  return std::stoi(text);
}

// "580.65.06" -> {580, 65, 6}; what is no number ends it.
std::vector<int> version_numbers(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    if (rest == end || *rest != '.') break;
    at = rest + 1;
  }
  return numbers;
}

void take(NodeThresholds& into, const std::string& key,
          const YamlValue& value) {
  if (value.is_list)
    refuse(value, "'" + key + "' is a list. Hint: a single value");
  const std::string text = value.items.empty() ? "" : value.items.front();
  if (key == "step") into.images_per_s = rate(key, value, {{"images/s", 1}});
  if (key == "allreduce")
    into.allreduce_gb_per_s = rate(key, value, {{"GB/s", 1}, {"MB/s", 1e-3}});
  if (key == "read")
    into.read_mb_per_s = rate(key, value, {{"MB/s", 1}, {"GB/s", 1e3}});
  if (key == "gpus") into.gpus = count(key, value);
  if (key == "driver") {
    into.driver = text;
    if (version_numbers(text).empty())
      refuse(value, "'driver' = '" + text +
                        "' is no version. Hint: as nvidia-smi shows it");
  }
  if (key == "self_test") {
    if (text != "required")
      refuse(value,
             "'self_test' = '" + text + "'. Hint: required, or leave it out");
    into.self_test = true;
  }
}

std::string only_type(const std::filesystem::path& path,
                      const std::map<std::string, NodeThresholds>& types,
                      const std::string& host) {
  const auto& [only, thresholds] = *types.begin();
  if (types.size() == 1 && !thresholds.names_hosts) return only;
  std::string names;
  for (const auto& [name, _] : types)
    names += (names.empty() ? "" : ", ") + name;
  throw ConfigError(
      "[doctor] {}: no type has hosts for {}. Hint: --node-type, one of {}",
      path.string(), host, names);
}

// What to do about a row that fails.
std::string remedy(const std::string& name, bool measured) {
  if (measured) return "the site file wants more of this type of node";
  if (name == "allreduce") return "it takes two ranks: doctor --ranks 2";
  if (name == "driver" || name == "self_test")
    return "it takes a GPU, and none is used here";
  return "see the rows above";
}

}  // namespace

NodeThresholds read_acceptance(const std::filesystem::path& path,
                               const std::string& type,
                               const std::string& host) {
  std::map<std::string, NodeThresholds> types;
  std::string fitting = type;
  size_t first = 0;  // of the hosts that fit, by their index in the file
  for (const auto& [name, value] : read_strict_yaml_file(path)) {
    const auto dot = name.find('.');
    const std::string key =
        dot == std::string::npos ? "" : name.substr(dot + 1);
    if (std::ranges::find(kKeys, key) == kKeys.end())
      refuse(value,
             formatted("'{}' is unknown. Hint: TYPE.KEY, nearest are {}", name,
                       nearest_names(key.empty() ? name : key, kKeys)));
    NodeThresholds& thresholds = types[name.substr(0, dot)];
    thresholds.type = name.substr(0, dot);
    if (key != "hosts") {
      take(thresholds, key, value);
      continue;
    }
    thresholds.names_hosts = true;
    const bool fits =
        std::ranges::any_of(value.items, [&](const std::string& pattern) {
          return fnmatch(pattern.c_str(), host.c_str(), 0) == 0;
        });
    if (!type.empty() || !fits) continue;
    if (fitting.empty() || value.number < first) {
      fitting = thresholds.type;
      first = value.number;
    }
  }
  if (types.empty())
    throw ConfigError(
        "[doctor] {}: no thresholds. Hint: TYPE: {{step: 100 images/s}}",
        path.string());
  if (fitting.empty()) fitting = only_type(path, types, host);
  const auto found = types.find(fitting);
  if (found != types.end()) {
    if (found->second.looks_at_nothing())
      throw ConfigError(
          "[doctor] {}: '{}' has no threshold. Hint: {}: {{step: 100 "
          "images/s}}",
          path.string(), fitting, fitting);
    return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [name, thresholds] : types) names.push_back(name);
  throw ConfigError("[doctor] {}: no type '{}'. Hint: nearest are {}",
                    path.string(), fitting, nearest_names(fitting, names));
}

CheckResult AcceptanceRow::check() const {
  const std::string with_unit = unit.empty() ? "" : " " + unit;
  const std::string text =
      (found.empty() ? "not measured" : found + with_unit) + ", at least " +
      wanted + with_unit;
  return {good ? Level::kPass : Level::kFail, "acceptance " + name,
          unit.empty() && wanted == "passed"
              ? (found.empty() ? "not made" : found)
              : text,
          good ? "" : remedy(name, !found.empty())};
}

std::vector<AcceptanceRow> compare(const NodeThresholds& wanted,
                                   const NodeFigures& found) {
  std::vector<AcceptanceRow> rows;
  const auto add = [&](const std::string& name, const std::string& unit,
                       const std::optional<double>& least,
                       const std::optional<double>& figure) {
    if (!least) return;
    rows.push_back({name, unit, fixed(*least, 2),
                    figure ? fixed(*figure, 2) : "",
                    figure && *figure >= *least});
  };
  add("step", "images/s", wanted.images_per_s, found.images_per_s);
  add("allreduce", "GB/s", wanted.allreduce_gb_per_s, found.allreduce_gb_per_s);
  add("read", "MB/s", wanted.read_mb_per_s, found.read_mb_per_s);
  if (wanted.gpus)
    rows.push_back({"gpus", "", std::to_string(*wanted.gpus),
                    std::to_string(found.gpus), found.gpus >= *wanted.gpus});
  if (!wanted.driver.empty()) {
    const auto old = [&](const std::string& driver) {
      return version_numbers(driver) < version_numbers(wanted.driver);
    };
    const auto bad = std::ranges::find_if(found.drivers, old);
    const bool good = bad == found.drivers.end() && !found.drivers.empty();
    std::string shown;
    if (!found.drivers.empty()) shown = good ? found.drivers.front() : *bad;
    rows.push_back({"driver", "", wanted.driver, shown, good});
  }
  if (wanted.self_test)
    rows.push_back({"self_test", "", "passed", found.self_test ? "passed" : "",
                    found.self_test});
  return rows;
}

}  // namespace chexnet
