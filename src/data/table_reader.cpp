// A table is read once from top to bottom; what a row lacks is refused with its
// line. Columns are found by name, so extra ones are no matter.
#include "table_reader.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/column_limit.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/table_text.hpp"
#include "labels.hpp"

namespace chexnet {
namespace {

struct Table {
  const std::string& path;
  int line = 0;
  [[noreturn]] void fail(const std::string& what,
                         const std::string& hint) const {
    throw DataError("[manifest] " + path + ":" + std::to_string(line) + ": " +
                    printable(shortened(what, kLongestError / 4) +
                              ". Hint: " + shortened(hint, kLongestError / 4)));
  }
};

// The cells of the first line.
std::vector<std::string> read_header(
    const std::vector<std::string_view>& fields, const Table& table) {
  if (fields.size() > kMostColumns)
    table.fail("the header has " + std::to_string(fields.size()) +
                   " columns, more than " + std::to_string(kMostColumns),
               "is this a table of images and labels?");
  std::vector<std::string> header;
  for (const auto f : fields) header.emplace_back(trimmed(f));
  return header;
}

float parse_age(std::string_view cell) {
  const auto age = years(cell);
  return age ? static_cast<float>(*age) : kUnlabeled;
}

// A label cell of CheXpert or a plain table.
float parse_label(std::string_view cell, const Table& table,
                  const std::string& finding) {
  cell = trimmed(cell);
  if (cell.empty()) return kUnlabeled;
  const auto value = parsed_number<float>(cell);
  if (!value || (*value != 0 && *value != 1 && *value != kUncertain))
    table.fail("label '" + std::string(cell) + "' of " + finding +
                   " is not 1, 0, -1 or blank",
               "is the column list right?");
  return *value;
}

float parse_weight(std::string_view cell, const Table& table,
                   const std::string& column) {
  cell = trimmed(cell);
  const auto value = parsed_number<float>(cell);
  // More, and one image's loss may be beyond what fp32 holds.
  constexpr float kMostWeight = 1e6f;
  if (!value || !std::isfinite(*value) || *value < 0 || *value > kMostWeight)
    table.fail("weight '" + std::string(cell) + "' in column " + column +
                   " is not a number from 0 to 1,000,000",
               "data.sample_weight names the column");
  return *value;
}

// npos where the table has no such column.
size_t find_column(const std::vector<std::string>& header,
                   const std::string& name) {
  const auto found = std::ranges::find(header, name);
  return found == header.end() ? std::string::npos
                               : static_cast<size_t>(found - header.begin());
}

size_t column(const std::vector<std::string>& header, const std::string& name,
              const Table& table) {
  const size_t found = find_column(header, name);
  if (found == std::string::npos)
    table.fail("no column '" + name + "'",
               "the header has " + nearest_names(name, header, header.size()));
  return found;
}

// npos where none is asked for, or the table lacks it.
size_t weight_column(const std::vector<std::string>& header,
                     const TableFile& file) {
  return file.sample_weight.empty() ? std::string::npos
                                    : find_column(header, file.sample_weight);
}

// Whether the row takes part.
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
    table.fail("the image of this row appears twice, first on line " +
                   std::to_string(m.lines[first->second]),
               "remove one of the rows");
  m.lines.push_back(static_cast<uint32_t>(table.line));
  m.images.emplace_back(image);
  m.patients.emplace_back(patient);
  return true;
}

void read_nih(const std::string& text, const TableFile& file, RowChoice& choice,
              Manifest& m) {
  m.findings = nih_findings();
  CsvReader csv(text);
  std::vector<std::string_view> fields;
  Table table{m.path};
  if (!csv.next(fields))
    table.fail("the file is empty", "this should be Data_Entry_2017.csv");
  table.line = 1;
  const std::vector<std::string> header = read_header(fields, table);
  const size_t image = column(header, "Image Index", table);
  const size_t labels = column(header, "Finding Labels", table);
  const size_t patient = column(header, "Patient ID", table);
  const size_t age = column(header, "Patient Age", table);
  const bool says_sex =
      std::ranges::find(header, "Patient Sex") != header.end();
  const size_t sex =
      column(header, says_sex ? "Patient Sex" : "Patient Gender", table);
  const size_t view = column(header, "View Position", table);
  const size_t weight = weight_column(header, file);
  choice.begin_table(m.path, header, {image, age, sex, view});
  const size_t needed = std::max({image, labels, patient, age, sex, view}) + 1;
  std::unordered_map<std::string_view, size_t> index;
  for (size_t k = 0; k < m.findings.size(); ++k)
    index.emplace(m.findings[k], k);
  while (csv.next(fields)) {
    table.line = csv.line();
    // The two bracket names of the header contain commas, so rows have 11
    // fields (12 with the 2017 file's last comma).
    if (fields.size() < needed || fields.size() > 12)
      table.fail(
          "row has " + std::to_string(fields.size()) + " fields, expected 11",
          "the row is damaged or cut off");
    if (!add_row(m, table, choice, fields, fields[image], fields[patient]))
      continue;
    const size_t at = m.labels.size();
    m.labels.resize(at + m.findings.size(), 0.0f);
    std::string_view list = trimmed(fields[labels]);
    if (list.empty())
      table.fail("finding labels are empty",
                 "NIH writes 'No Finding' where there is none");
    while (!list.empty()) {
      const auto bar = list.find('|');
      const auto name = trimmed(list.substr(0, bar));
      list.remove_prefix(bar == std::string_view::npos ? list.size() : bar + 1);
      if (name == "No Finding") continue;
      const auto found = index.find(name);
      if (found == index.end())
        table.fail("unknown finding '" + std::string(name) + "'",
                   "nearest are " + nearest_names(name, m.findings));
      m.labels[at + found->second] = 1.0f;
    }
    if (weight != std::string::npos)
      m.sample_weights.push_back(parse_weight(
          weight < fields.size() ? fields[weight] : std::string_view{}, table,
          file.sample_weight));
    m.ages.push_back(parse_age(fields[age]));
    m.sexes.emplace_back(trimmed(fields[sex]));
    m.views.emplace_back(trimmed(fields[view]));
  }
}

// "patient00001", and not "patients" or "patient_data".
bool is_patient_folder(std::string_view part) {
  constexpr std::string_view kStart = "patient";
  if (!part.starts_with(kStart) || part.size() == kStart.size()) return false;
  return part.find_first_not_of("0123456789", kStart.size()) ==
         std::string_view::npos;
}

// "…/patient00001/study1/view1_frontal.jpg" -> "patient00001"
std::string chexpert_patient(std::string_view path, const Table& table) {
  for (std::string_view rest = path; !rest.empty();) {
    const auto slash = rest.find('/');
    const auto part = rest.substr(0, slash);
    if (is_patient_folder(part)) return std::string(part);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size()
                                                       : slash + 1);
  }
  table.fail("no folder 'patient<number>' in its path",
             "CheXpert paths hold .../patient00001/...");
}

// Columns of a table with one column per finding.
struct Layout {
  std::vector<std::string> header;
  size_t image, patient, age, sex, view, weight;  // npos where there is none
  std::vector<size_t> labels;                     // [K]
};

// The findings of `columns` that the header has; all must be there unless
// `may_lack`.
void take_named(const ColumnsConfig& columns, bool may_lack, const Table& table,
                Layout& layout, Manifest& m) {
  for (const auto& name : columns.findings) {
    if (may_lack &&
        std::ranges::find(layout.header, name) == layout.header.end())
      continue;
    m.findings.push_back(name);
    layout.labels.push_back(column(layout.header, name, table));
  }
}

// Every column that is nothing else.
void take_others(size_t lateral, Layout& layout, Manifest& m) {
  const auto& l = layout;
  for (size_t c = 0; c < l.header.size(); ++c) {
    if (c == l.image || c == l.patient || c == l.age || c == l.sex ||
        c == l.view || c == l.weight || c == lateral)
      continue;
    m.findings.push_back(l.header[c]);
    layout.labels.push_back(c);
  }
}

Layout layout_of(const std::vector<std::string_view>& fields,
                 const TableFile& file, bool may_lack, const Table& table,
                 Manifest& m) {
  const bool chexpert = file.format == ManifestFormat::kChexpert;
  ColumnsConfig columns = file.columns;
  if (chexpert) columns = {"Path", "", {}, "Age", "Sex", "AP/PA"};
  Layout layout;
  layout.header = read_header(fields, table);
  const auto optional = [&](const std::string& name) {
    return name.empty() ? std::string::npos
                        : column(layout.header, name, table);
  };
  layout.image = column(layout.header, columns.image, table);
  layout.patient = optional(columns.patient);
  layout.age = optional(columns.age);
  layout.sex = optional(columns.sex);
  layout.view = optional(columns.view);
  layout.weight = weight_column(layout.header, file);
  const size_t lateral = optional(chexpert ? "Frontal/Lateral" : std::string());
  if (columns.findings.empty())
    take_others(lateral, layout, m);
  else
    take_named(columns, may_lack, table, layout, m);
  if (layout.labels.empty())
    table.fail("no column with findings",
               "name them in data.manifest.columns.findings");
  if (const auto doubled = doubled_finding(m.findings); !doubled.empty())
    table.fail("finding " + doubled, "each finding has one column");
  return layout;
}

void read_columns(const std::string& text, const TableFile& file, bool may_lack,
                  RowChoice& choice, Manifest& m) {
  const bool chexpert = file.format == ManifestFormat::kChexpert;
  CsvReader csv(text);
  std::vector<std::string_view> fields;
  Table table{m.path};
  if (!csv.next(fields))
    table.fail("the file is empty", "a table with a header line is needed");
  table.line = 1;
  const Layout layout = layout_of(fields, file, may_lack, table, m);
  choice.begin_table(m.path, layout.header,
                     {layout.image, layout.age, layout.sex, layout.view});
  m.knows_patients = chexpert || layout.patient != std::string::npos;
  while (csv.next(fields)) {
    table.line = csv.line();
    if (fields.size() != layout.header.size())
      table.fail("row has " + std::to_string(fields.size()) +
                     " fields, the header " +
                     std::to_string(layout.header.size()),
                 "the row is damaged or cut off");
    const auto name = trimmed(fields[layout.image]);
    std::string of_patient(name);
    if (chexpert)
      of_patient = chexpert_patient(name, table);
    else if (layout.patient != std::string::npos)
      of_patient = fields[layout.patient];
    if (!add_row(m, table, choice, fields, name, of_patient)) continue;
    for (size_t k = 0; k < layout.labels.size(); ++k)
      m.labels.push_back(
          parse_label(fields[layout.labels[k]], table, m.findings[k]));
    const auto cell = [&](size_t c) {
      return std::string(c == std::string::npos ? std::string_view{}
                                                : trimmed(fields[c]));
    };
    if (layout.weight != std::string::npos)
      m.sample_weights.push_back(
          parse_weight(fields[layout.weight], table, file.sample_weight));
    m.ages.push_back(parse_age(cell(layout.age)));
    m.sexes.push_back(cell(layout.sex));
    m.views.push_back(cell(layout.view));
  }
}

}  // namespace

Manifest read_table(const TableFile& file, bool may_lack_findings,
                    const S3Config& s3, RowChoice& choice) {
  Manifest m;
  m.path = file.path;
  m.tables = {{m.path, 0, file.split}};
  const std::string text = table_text(m.path, s3);
  m.sha256 = sha256_hex(text);
  if (const size_t line = line_not_utf8(text); line > 0)
    Table{m.path, static_cast<int>(line)}.fail("is not UTF-8",
                                               "save the table as UTF-8");
  // No row is shorter than that, but a file of empty lines has as many.
  constexpr size_t kShortestRow = 8;
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) + 1;
  const size_t rows = std::min(lines, text.size() / kShortestRow + 1);
  m.rows.reserve(rows);
  m.lines.reserve(rows);
  m.images.reserve(rows);
  m.patients.reserve(rows);
  if (file.format == ManifestFormat::kNih)
    read_nih(text, file, choice, m);
  else
    read_columns(text, file, may_lack_findings, choice, m);
  if (m.size() == 0 && m.left_out.empty())
    throw DataError("[manifest] " + m.path +
                    ": no rows below the header. Hint: is the file complete?");
  return m;
}

}  // namespace chexnet
