// A cell is text. It is compared as a number where both sides are numbers, so
// "1.0" is 1, and ages as years, so "058Y" is 58. A blank cell is no number and
// equals the empty value alone.
#include "row_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/patient_ids.hpp"
#include "chexnet/data/table_text.hpp"

namespace chexnet {
namespace {

constexpr size_t kNone = std::string::npos;
constexpr const char* kUsage = "write [view=PA], [age>=18] or [sex!=M]";

[[noreturn]] void refuse(const std::string& condition, const std::string& what,
                         const std::string& hint) {
  throw ConfigError("[config] data.filter: '{}' {}. Hint: {}", condition, what,
                    hint);
}

}  // namespace

// ChestX-ray14's older release writes ages as 058Y, 005M, 013D; BRAX gives
// bands, "60-64" and "85 or more", which count as their first year.
std::optional<double> years(std::string_view text) {
  text = trimmed(text);
  constexpr std::string_view kOpenBand = " or more";
  if (text.ends_with(kOpenBand)) text.remove_suffix(kOpenBand.size());
  if (const auto dash = text.find('-');
      dash != std::string_view::npos && dash > 0 &&
      text.find_first_not_of("0123456789 ", dash + 1) == std::string_view::npos)
    text = trimmed(text.substr(0, dash));
  double in_a_year = 1;
  if (!text.empty() &&
      std::string_view("YMDW").find(text.back()) != std::string_view::npos) {
    if (text.back() == 'M') in_a_year = 12;
    if (text.back() == 'W') in_a_year = 52;
    if (text.back() == 'D') in_a_year = 365;
    text.remove_suffix(1);
  }
  const auto value = parsed_number<double>(text);
  if (!value) return std::nullopt;
  return *value / in_a_year;
}

namespace {

// One name a line, as a table would write it. A line with several names, or in
// another encoding, would silently leave everybody in.
std::vector<std::string> excluded_names(const std::string& path,
                                        const S3Config& s3) {
  const std::string text(without_byte_order_mark(table_text(path, s3)));
  const auto refuse = [&](size_t line, const std::string& what) {
    throw DataError(
        "[manifest] {}:{}: {}. Hint: data.exclude wants UTF-8 text, one image "
        "or patient a line",
        path, line, what);
  };
  if (const auto bad = line_not_utf8(text); bad > 0)
    refuse(bad, "is no UTF-8 text");
  if (text.find('\0') != std::string::npos) refuse(1, "is no UTF-8 text");
  std::vector<std::string> names;
  size_t line = 0;
  CsvReader csv(text, path);
  for (std::vector<std::string_view> fields; csv.next(fields);) {
    line = csv.line();
    const std::string name(trimmed(fields[0]));
    if (fields.size() > 1 || name.find_first_of(";\r") != std::string::npos)
      refuse(line, "holds several names");
    if (is_pseudonym(name))
      refuse(line,
             "is a pseudonym, as split.csv may have it: whose it is, is "
             "not known here");
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace

RowChoice::RowChoice(const DataConfig& config) : exclude_path_(config.exclude) {
  for (const auto& text : config.filter) conditions_.push_back(parse(text));
  if (exclude_path_.empty()) return;
  for (const auto& name : excluded_names(exclude_path_, config.s3))
    excluded_.emplace(name, false);
}

// "column SIGN value" or, for = and !=, "value|value".
RowChoice::Condition RowChoice::parse(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, Sign>, 6> kSigns = {
      {{"!=", Sign::kOther},
       {"<=", Sign::kAtMost},
       {">=", Sign::kAtLeast},
       {"=", Sign::kEqual},
       {"<", Sign::kLess},
       {">", Sign::kMore}}};
  const auto at = text.find_first_of("!<>=");
  if (at == kNone || trimmed(text.substr(0, at)).empty())
    refuse(text, "is no condition", kUsage);
  Condition condition;
  condition.text = text;
  condition.column = trimmed(text.substr(0, at));
  const std::string_view from = std::string_view(text).substr(at);
  const auto sign = std::ranges::find_if(
      kSigns, [&](const auto& s) { return from.starts_with(s.first); });
  if (sign == kSigns.end()) refuse(text, "is no condition", kUsage);
  condition.sign = sign->second;
  std::string_view rest = from.substr(sign->first.size());
  for (auto bar = rest.find('|');; bar = rest.find('|')) {
    condition.values.emplace_back(trimmed(rest.substr(0, bar)));
    if (bar == kNone) break;
    rest.remove_prefix(bar + 1);
  }
  if (condition.sign == Sign::kEqual || condition.sign == Sign::kOther)
    return condition;
  const auto limit = years(condition.values.front());
  if (!limit || std::isnan(*limit) || condition.values.size() > 1)
    refuse_limit(condition);
  return condition;
}

void RowChoice::refuse_limit(const Condition& condition) {
  refuse(condition.text, "compares with no number", kUsage);
}

std::optional<double> RowChoice::number_in(const Condition& condition,
                                           std::string_view text) {
  return condition.is_age ? years(text) : parsed_number<double>(text);
}

bool RowChoice::meets(const Condition& condition, std::string_view cell) {
  const auto value = number_in(condition, cell);
  const auto equal = [&](const std::string& wanted) {
    if (cell == wanted) return true;
    const auto number = number_in(condition, wanted);
    return value && number && *value == *number;
  };
  const auto is_one = [&] {
    return std::ranges::any_of(condition.values, equal);
  };
  if (condition.sign == Sign::kEqual) return is_one();
  if (condition.sign == Sign::kOther) return !is_one();
  const auto limit = number_in(condition, condition.values.front());
  if (!value || !limit) return false;
  if (condition.sign == Sign::kLess) return *value < *limit;
  if (condition.sign == Sign::kAtMost) return *value <= *limit;
  if (condition.sign == Sign::kMore) return *value > *limit;
  return *value >= *limit;
}

void RowChoice::begin_table(const std::string& path,
                            const std::vector<std::string>& header,
                            const RoleColumns& roles) {
  ++tables_;
  columns_.insert(columns_.end(), header.begin(), header.end());
  const auto role = [&](const std::string& name) {
    if (name == "image") return roles.image;
    if (name == "age") return roles.age;
    if (name == "sex") return roles.sex;
    return name == "view" ? roles.view : kNone;
  };
  for (auto& condition : conditions_) {
    const auto found = std::ranges::find(header, condition.column);
    condition.field = found == header.end()
                          ? role(condition.column)
                          : static_cast<size_t>(found - header.begin());
    condition.is_age = condition.field != kNone && condition.field == roles.age;
    condition.is_patient =
        condition.field == kNone && condition.column == "patient";
    // "6M" is a number of an age alone, and which column is the age is known
    // here.
    const bool compares =
        condition.sign != Sign::kEqual && condition.sign != Sign::kOther;
    if (compares && !number_in(condition, condition.values.front()))
      refuse_limit(condition);
    if (condition.field == kNone && !condition.is_patient)
      condition.without.push_back(path);
  }
}

bool RowChoice::keeps(const std::vector<std::string_view>& fields,
                      std::string_view image, std::string_view patient) {
  for (const auto name : {image, patient}) {
    if (excluded_.empty()) break;
    const auto found = excluded_.find(std::string(name));
    if (found == excluded_.end()) continue;
    found->second = true;
    return false;
  }
  return std::ranges::all_of(conditions_, [&](const Condition& condition) {
    if (condition.is_patient) return meets(condition, patient);
    if (condition.field == kNone) return true;
    return meets(condition, condition.field < fields.size()
                                ? trimmed(fields[condition.field])
                                : std::string_view());
  });
}

void RowChoice::finish() const {
  for (const auto& condition : conditions_) {
    // Every table may have these, so they are no slip.
    constexpr std::array<std::string_view, 5> kRoles = {"image", "patient",
                                                        "age", "sex", "view"};
    const bool is_role =
        std::ranges::find(kRoles, condition.column) != kRoles.end();
    if (condition.without.size() == tables_ && !is_role) {
      std::set<std::string> names(columns_.begin(), columns_.end());
      names.insert(kRoles.begin(), kRoles.end());
      const std::vector<std::string> known(names.begin(), names.end());
      refuse(condition.text,
             "names a column that no table has ('" + condition.column + "')",
             "nearest are " + nearest_names(condition.column, known));
    }
    if (!condition.without.empty())
      log_info("data.filter: '" + condition.text + "' leaves all rows of " +
               listed(condition.without) + ", which has no such column");
  }
  const auto unseen = std::ranges::count_if(
      excluded_, [](const auto& entry) { return !entry.second; });
  if (unseen > 0)
    log_warning("data.exclude: " + std::to_string(unseen) + " of " +
                std::to_string(excluded_.size()) + " names of " +
                exclude_path_ + " are neither an image nor a patient here");
}

}  // namespace chexnet
