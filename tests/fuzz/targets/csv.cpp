// Tables: records that are quoted and written again read back equal.
#include "chexnet/core/csv.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

using Record = std::vector<std::string>;

std::vector<Record> records(const std::string& text) {
  CsvReader csv(text, "a.csv");
  std::vector<std::string_view> fields;
  std::vector<Record> all;
  int line = 0;
  while (csv.next(fields)) {
    require(csv.line() > line, "each record begins on a line of its own");
    line = csv.line();
    require(!fields.empty(), "a record has a field");
    all.emplace_back(fields.begin(), fields.end());
  }
  return all;
}

// Bytes without a meaning in CSV.
size_t plain_bytes(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) {
    return c != ',' && c != '"' && c != '\r' && c != '\n';
  }));
}

void check_nothing_is_lost(std::string_view text,
                           const std::vector<Record>& all) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  size_t kept = 0;
  for (const auto& record : all)
    for (const auto& field : record) kept += plain_bytes(field);
  require(kept == plain_bytes(text), "no byte of a table is lost");
}

void check_round_trip(const std::vector<Record>& all) {
  std::string again;
  for (const auto& record : all) {
    if (record == Record{""}) return;  // an empty line is no record
    for (size_t i = 0; i < record.size(); ++i)
      again += (i > 0 ? "," : "") + csv_field(record[i]);
    again += "\n";
  }
  // A byte order mark that is content would be taken for the file's.
  if (again.starts_with("\xEF\xBB\xBF")) return;
  require(records(again) == all, "records that are written read back equal");
}

void check_list(const std::string& text) {
  const bool ends_by_nul = text.find('\0') != std::string::npos;
  for (const auto& line : list_lines(text)) {
    require(!line.empty(), "an empty line is no entry");
    if (ends_by_nul)
      require(text.find(line) != std::string::npos, "an entry is as it was");
    else
      require(trimmed(line) == line, "lines are trimmed");
  }
}

void run(Bytes bytes) {
  const std::string text = text_of(bytes);
  try {
    const auto all = records(text);
    check_nothing_is_lost(text, all);
    check_round_trip(all);
  } catch (const DataError&) {  // a quote is not closed
    require(text.find('"') != std::string::npos, "there is a quote");
  }
  check_list(text);
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) + 1;
  require(line_not_utf8(text) <= lines, "a line that is named exists");
}

std::vector<std::string> seeds() {
  return {"a,b,c\n1,2,3\n", "\xEF\xBB\xBFx\r\n\"a\"\"b\",\"c\nd\",\r\n\r\n1,,",
          "\"open,1\n2", "M\xC3\xBCller,\xF0\x9F\x98\x80\n\xC3\x28\n",
          std::string(" a\n.png\0b \0\0", 12)};
}

const Registered kTarget{{"csv", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
