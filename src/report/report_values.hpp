// Values of results.json for pages. A value of another type than expected
// counts as absent: the file may come from somebody else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/eval/interval.hpp"
#include "figure_output.hpp"
#include "significant.hpp"

namespace chexnet {

// Of an object; otherwise, and where there is no such key, null.
inline const Json& member(const Json& from, std::string_view key) {
  static const Json kNull;
  if (!from.is_object()) return kNull;
  const auto found = from.find(key);
  return found == from.end() ? kNull : *found;
}

inline std::optional<double> number(const Json& from, std::string_view key) {
  const Json& value = member(from, key);
  if (!value.is_number()) return std::nullopt;
  const auto found = value.get<double>();
  return std::isfinite(found) ? std::optional(found) : std::nullopt;
}

// A count as text, "" where there is none.
inline std::string count_text(const Json& from, std::string_view key) {
  const auto found = number(from, key);
  return found && *found >= 0 && *found < 1e15
             ? std::to_string(static_cast<int64_t>(*found))
             : "";
}

// "1 patient", "10,000 patients".
inline std::string plural(const std::string& count, const std::string& what) {
  return count + " " + (count == "1" ? what : plural_of(what));
}

inline std::string text(const Json& from, std::string_view key) {
  const Json& value = member(from, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// A heading is never empty.
inline std::string run_name(const Json& results) {
  std::string name = text(results, "run");
  if (name.find_first_not_of(" \t\r\n") == std::string::npos)
    name = "a run without a name";
  return name;
}

inline bool is_true(const Json& from, std::string_view key) {
  const Json& value = member(from, key);
  return value.is_boolean() && value.get<bool>();
}

inline std::optional<Interval> interval(const Json& from,
                                        std::string_view key) {
  const Json& value = member(from, key);
  if (!value.is_array() || value.size() != 2 || !value[0].is_number() ||
      !value[1].is_number())
    return std::nullopt;
  return Interval{value[0].get<double>(), value[1].get<double>()};
}

inline bool is_ensemble(const Json& results) {
  return member(member(results, "ensemble"), "members").is_array();
}

inline bool is_out_of_fold(const Json& results) {
  return is_true(member(results, "ensemble"), "out_of_fold");
}

// "The mean of 3 networks (DenseNet-121)" or "DenseNet-121".
std::string networks_text(const Json& results);

// A finding's or network's name for readers: "Pleural Thickening",
// "DenseNet-121".
inline std::string shown(std::string name) {
  for (const auto& [prefix, family] :
       {std::pair<std::string_view, std::string>{"densenet", "DenseNet-"},
        {"resnet", "ResNet-"}})
    if (name.starts_with(prefix) && name != prefix)
      return family + name.substr(prefix.size());
  std::ranges::replace(name, '_', ' ');
  return name;
}

// An operating point's rule for readers: "Youden", "sensitivity 0.9".
inline std::string rule_text(const Json& point) {
  const std::string rule = text(point, "rule");
  return rule == "youden" ? "Youden" : rule;
}

// The digits in which people compare AUROCs; "-" where there is none.
inline std::string digits(const std::optional<double>& value, int count = 3) {
  return value ? fixed(*value, count) : "-";
}

// "0.812 (0.780 to 0.841)"
inline std::string with_interval(const std::optional<double>& value,
                                 const std::optional<Interval>& range,
                                 int count = 3) {
  if (!value) return "not defined";
  if (!range) return fixed(*value, count);
  return fixed(*value, count) + " (" + fixed(range->low, count) + " to " +
         fixed(range->high, count) + ")";
}

// "+0.012 (0.001 to 0.023)"; "-" of none.
inline std::string signed_with_interval(const std::optional<double>& value,
                                        const std::optional<Interval>& range) {
  if (!value) return "-";
  return (*value < 0 ? "" : "+") + with_interval(value, range);
}

// "0.812 (0.780 to 0.841) over 8 findings", from an evaluation.
inline std::string mean_auroc_text(const Json& evaluation, int count = 3) {
  // Older versions have no count.
  const auto findings = number(evaluation, "findings_in_mean").value_or(0);
  const bool is_count = findings >= 1 && findings < 1e15;
  return with_interval(number(evaluation, "mean_auroc"),
                       interval(evaluation, "mean_auroc_interval"), count) +
         over_findings(is_count ? static_cast<int64_t>(findings) : 0,
                       is_true(evaluation, "mean_is_rough"));
}

// A fraction of an operating point, as results.json has it: "0.81 (0.70 to
// 0.88)".
inline std::string proportion_text(const Json& point, std::string_view key) {
  const Json& proportion = member(point, key);
  return with_interval(number(proportion, "value"),
                       interval(proportion, "interval"), 2);
}

}  // namespace chexnet
