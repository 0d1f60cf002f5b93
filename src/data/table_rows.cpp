#include "table_rows.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/column_limit.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/table_text.hpp"
#include "labels.hpp"

namespace chexnet {

void Table::fail(const std::string& what, const std::string& hint) const {
  throw DataError(
      "[manifest] {}:{}: {}", path, line,
      printable(formatted("{}. Hint: {}", shortened(what, kLongestError / 4),
                          shortened(hint, kLongestError / 4))));
}

std::string utf8_table(const std::string& path, const S3Config& s3) {
  std::string text = table_text(path, s3);
  if (const size_t line = line_not_utf8(text); line > 0)
    Table{path, static_cast<int>(line)}.fail("is not UTF-8",
                                             "save the table as UTF-8");
  return text;
}

std::vector<std::string> read_header(
    const std::vector<std::string_view>& fields, const Table& table) {
  if (fields.size() > kMostColumns)
    table.fail(formatted("the header has {} columns, more than {}",
                         fields.size(), kMostColumns),
               "is this a table of images and labels?");
  std::vector<std::string> header;
  for (const auto f : fields) {
    if (trimmed(f).find('\r') != std::string_view::npos)
      table.fail("lines end by carriage returns alone",
                 "save the table with line ends of Unix or Windows");
    if (f.find("\xEF\xBB\xBF") != std::string_view::npos)
      table.fail("a byte order mark is in the name of a column",
                 "were files put together? Remove the mark");
    header.emplace_back(trimmed(f));
  }
  return header;
}

float parse_label(std::string_view cell, const Table& table,
                  const std::string& finding) {
  cell = trimmed(cell);
  if (cell.empty()) return kUnlabeled;
  const auto value = parsed_number<float>(cell);
  if (!value || (*value != 0 && *value != 1 && *value != kUncertain))
    table.fail(
        formatted("label '{}' of {} is not 1, 0, -1 or blank", cell, finding),
        "write 1 for present, 0 for absent, -1 for uncertain; "
        "--set data.manifest.columns.findings=[A,B] names the columns that "
        "are findings, columns.age, .sex, .view and .study some that are not");
  return *value;
}

float parse_age(std::string_view cell) {
  const auto age = years(cell);
  return age ? static_cast<float>(*age) : kUnlabeled;
}

namespace {

// All columns in the order of the file, where a person can take them in.
std::string columns_hint(const std::string& name,
                         const std::vector<std::string>& header) {
  constexpr size_t kMostListed = 12;
  if (header.size() > kMostListed)
    return "nearest are " + nearest_names(name, header) + ", of " +
           counted(std::ssize(header), "column");
  std::string text;
  for (const auto& column : header)
    text += (text.empty() ? "the header has '" : ", '") + column + "'";
  return text;
}

}  // namespace

size_t column(const std::vector<std::string>& header, const std::string& name,
              const Table& table, const std::string& remedy) {
  auto found = std::ranges::find(header, name);
  if (found == header.end() &&
      std::ranges::count(header, lowered(name), lowered) == 1)
    found = std::ranges::find(header, lowered(name), lowered);
  if (found == header.end())
    table.fail("no column '" + name + "'", columns_hint(name, header) + remedy);
  if (std::ranges::count(header, *found) > 1)
    table.fail("column '" + name + "' is in the header twice",
               "nobody can tell which one counts: rename or remove one");
  return static_cast<size_t>(found - header.begin());
}

size_t optional_column(const std::vector<std::string>& header,
                       const std::string& name, const Table& table) {
  const bool has_it =
      !name.empty() && std::ranges::find(header, name) != header.end();
  return has_it ? column(header, name, table) : std::string::npos;
}

TableRows::TableRows(const std::string& text, const std::string& path)
    : table{path}, csv_(text, path, separator_of(text)) {
  if (!csv_.next(fields))
    table.fail("the file is empty", "a table with a header line is needed");
  header = read_header(fields, table);
}

bool TableRows::next() {
  if (!csv_.next(fields)) return false;
  table.line = csv_.line();
  if (fields.size() != header.size())
    table.fail(formatted("row has {}, the header {}",
                         counted(std::ssize(fields), "field"), header.size()),
               "the row is damaged or cut off");
  return true;
}

size_t TableRows::column(const std::string& name) const {
  return chexnet::column(header, name, table, kOtherLayout);
}

std::string_view TableRows::cell(size_t column) const {
  return column == std::string::npos ? std::string_view{}
                                     : trimmed(fields[column]);
}

std::vector<size_t> take_findings(const TableRows& rows,
                                  const std::vector<size_t>& others,
                                  const std::string& hint, Manifest& m) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < rows.header.size(); ++c) {
    if (std::ranges::find(others, c) != others.end()) continue;
    columns.push_back(c);
    m.findings.push_back(rows.header[c]);
  }
  check_findings(rows.table, hint, m);
  return columns;
}

void check_findings(const Table& table, const std::string& hint,
                    const Manifest& m) {
  if (m.findings.empty()) table.fail("no column with findings", hint);
  if (const auto doubled = doubled_finding(m.findings); !doubled.empty())
    table.fail("finding " + doubled, "each finding has one column");
}

bool add_row(Manifest& m, const Table& table, RowChoice& choice,
             const std::vector<std::string_view>& fields,
             std::string_view image, std::string_view patient) {
  image = trimmed(image);
  patient = trimmed(patient);
  if (image.empty())
    table.fail("image name is empty", "is this the right table?");
  if (patient.empty())
    table.fail("patient id is empty",
               "splits are made by patient, so each row needs one");
  if (!choice.keeps(fields, image, patient)) {
    m.left_out.emplace(image);
    return false;
  }
  const auto [first, is_new] =
      m.rows.emplace(image, static_cast<uint32_t>(m.images.size()));
  if (!is_new)
    table.fail(
        formatted("the image of this row appears twice, first on line {}",
                  m.lines[first->second]),
        "remove one of the rows");
  m.lines.push_back(static_cast<uint32_t>(table.line));
  m.images.emplace_back(image);
  m.patients.emplace_back(patient);
  return true;
}

void push_known(const KnownOfImage& image, Manifest& m) {
  m.ages.push_back(image.age);
  m.sexes.emplace_back(trimmed(image.sex));
  m.views.emplace_back(trimmed(image.view));
  m.studies.emplace_back(trimmed(image.study));
}

void push_weight(const std::vector<std::string_view>& fields, size_t weight,
                 const Table& table, const TableFile& file, Manifest& m) {
  if (weight == std::string::npos) return;
  // A row of ChestX-ray14 may be shorter than its header.
  const std::string_view cell =
      weight < fields.size() ? trimmed(fields[weight]) : std::string_view{};
  const auto value = parsed_number<float>(cell);
  // More, and one image's loss may be beyond what fp32 holds.
  constexpr float kMostWeight = 1e6f;
  if (!value || !std::isfinite(*value) || *value < 0 || *value > kMostWeight)
    table.fail(
        formatted(
            "weight '{}' in column {} is not a number from 0 to 1,000,000",
            cell, file.sample_weight),
        "data.sample_weight names the column");
  m.sample_weights.push_back(*value);
}

void log_left_out(const Manifest& m, int64_t images, const std::string& why) {
  if (images > 0)
    log_info(m.path + ": " + counted(images, "image") + " left out: " + why);
}

}  // namespace chexnet
