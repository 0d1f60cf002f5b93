// Which rows of the tables take part: data.filter and data.exclude.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

// Columns of one table by what they hold, npos where it has none. Filters name
// them so in tables that spell them differently.
struct RoleColumns {
  size_t image = std::string::npos, age = std::string::npos,
         sex = std::string::npos, view = std::string::npos;
};

// A row takes part when it meets every condition of data.filter whose column
// its table has, and neither its image nor its patient is in data.exclude.
class RowChoice {
 public:
  // ConfigError for a condition that cannot be read; reads data.exclude.
  explicit RowChoice(const DataConfig& config);

  // ConfigError for a condition that compares with no number of its column.
  void begin_table(const std::string& path,
                   const std::vector<std::string>& header,
                   const RoleColumns& roles);
  bool keeps(const std::vector<std::string_view>& fields,
             std::string_view image, std::string_view patient);

  // After the last table: ConfigError for a column that no table has. Logs
  // which tables a filter did not touch, and names that no table has.
  void finish() const;

 private:
  enum class Sign { kEqual, kOther, kLess, kAtMost, kMore, kAtLeast };
  struct Condition {
    std::string text, column;
    Sign sign = Sign::kEqual;
    std::vector<std::string> values;   // any of them; one for < and >
    size_t field = std::string::npos;  // in the table that is read
    bool is_patient = false, is_age = false;
    std::vector<std::string> without;  // tables without the column
  };
  static Condition parse(const std::string& text);
  [[noreturn]] static void refuse_limit(const Condition& condition);
  // A cell or a value of the condition; an age in years.
  static std::optional<double> number_in(const Condition& condition,
                                         std::string_view text);
  static bool meets(const Condition& condition, std::string_view cell);

  std::vector<Condition> conditions_;
  std::string exclude_path_;
  std::unordered_map<std::string, bool> excluded_;  // name -> seen in a table
  std::vector<std::string> columns_;                // of all tables
  size_t tables_ = 0;
};

// "58", "058Y", "006M", "012D" as years, or any plain number.
std::optional<double> years(std::string_view text);

}  // namespace chexnet
