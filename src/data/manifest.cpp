// A table is read once from top to bottom; what a row lacks is refused with its
// line. Columns are found by name, so extra ones are no matter.
#include "chexnet/data/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/findings.hpp"
#include "labels.hpp"

namespace chexnet {
namespace {

struct Table {
  const std::string& path;
  int line = 0;
  [[noreturn]] void fail(const std::string& what,
                         const std::string& hint) const {
    throw DataError("[manifest] " + path + ":" + std::to_string(line) + ": " +
                    printable(what + ". Hint: " + hint));
  }
};

bool parse_float(std::string_view text, float& value) {
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// "58", "058Y", "006M", "012D"; years.
float parse_age(std::string_view text) {
  text = trimmed(text);
  float unit = 1;
  if (!text.empty() &&
      std::string_view("YMDW").find(text.back()) != std::string_view::npos) {
    if (text.back() == 'M') unit = 1.0f / 12;
    if (text.back() == 'W') unit = 1.0f / 52;
    if (text.back() == 'D') unit = 1.0f / 365;
    text.remove_suffix(1);
  }
  float value = 0;
  return parse_float(text, value) ? value * unit : kUnlabeled;
}

// A label cell of CheXpert or a plain table.
float parse_label(std::string_view cell, const Table& table,
                  const std::string& finding) {
  cell = trimmed(cell);
  if (cell.empty()) return kUnlabeled;
  float value = 0;
  if (!parse_float(cell, value) ||
      (value != 0 && value != 1 && value != kUncertain))
    table.fail("label '" + std::string(cell) + "' of " + finding +
                   " is not 1, 0, -1 or blank",
               "is the column list right?");
  return value;
}

std::size_t column(const std::vector<std::string>& header,
                   const std::string& name, const Table& table) {
  const auto found = std::ranges::find(header, name);
  if (found == header.end())
    table.fail("no column '" + name + "'",
               "the header has " + nearest_names(name, header, header.size()));
  return static_cast<std::size_t>(found - header.begin());
}

void add_row(Manifest& m, const Table& table, std::string_view image,
             std::string_view patient) {
  image = trimmed(image);
  patient = trimmed(patient);
  if (image.empty())
    table.fail("image name is empty", "is this the right table?");
  if (patient.empty())
    table.fail("patient id is empty",
               "splits are made by patient, so each row needs one");
  const auto [first, is_new] =
      m.rows.emplace(image, static_cast<std::uint32_t>(m.images.size()));
  if (!is_new)
    table.fail("the image of this row appears twice, first on line " +
                   std::to_string(m.lines[first->second]),
               "remove one of the rows");
  m.lines.push_back(static_cast<std::uint32_t>(table.line));
  m.images.emplace_back(image);
  m.patients.emplace_back(patient);
}

void read_nih(const std::string& text, Manifest& m) {
  m.findings = nih_findings();
  CsvReader csv(text);
  std::vector<std::string_view> fields;
  Table table{m.path};
  if (!csv.next(fields))
    table.fail("the file is empty", "this should be Data_Entry_2017.csv");
  std::vector<std::string> header;
  for (const auto f : fields) header.emplace_back(trimmed(f));
  table.line = 1;
  const std::size_t image = column(header, "Image Index", table);
  const std::size_t labels = column(header, "Finding Labels", table);
  const std::size_t patient = column(header, "Patient ID", table);
  const std::size_t age = column(header, "Patient Age", table);
  const bool says_sex =
      std::ranges::find(header, "Patient Sex") != header.end();
  const std::size_t sex =
      column(header, says_sex ? "Patient Sex" : "Patient Gender", table);
  const std::size_t view = column(header, "View Position", table);
  const std::size_t needed =
      std::max({image, labels, patient, age, sex, view}) + 1;
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t k = 0; k < m.findings.size(); ++k)
    index.emplace(m.findings[k], k);
  while (csv.next(fields)) {
    table.line = csv.line();
    // The two bracket names of the header contain commas, so rows have 11
    // fields (12 with the 2017 file's last comma).
    if (fields.size() < needed || fields.size() > 12)
      table.fail(
          "row has " + std::to_string(fields.size()) + " fields, expected 11",
          "the row is damaged or cut off");
    add_row(m, table, fields[image], fields[patient]);
    const std::size_t at = m.labels.size();
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

void read_columns(const std::string& text, const DataConfig& config,
                  Manifest& m) {
  const bool chexpert = config.manifest.format == ManifestFormat::kChexpert;
  ColumnsConfig columns = config.manifest.columns;
  if (chexpert) columns = {"Path", "", {}, "Age", "Sex", "AP/PA"};
  CsvReader csv(text);
  std::vector<std::string_view> fields;
  Table table{m.path};
  if (!csv.next(fields))
    table.fail("the file is empty", "a table with a header line is needed");
  table.line = 1;
  std::vector<std::string> header;
  for (const auto f : fields) header.emplace_back(trimmed(f));
  const auto optional = [&](const std::string& name) {
    return name.empty() ? std::string::npos : column(header, name, table);
  };
  const std::size_t image = column(header, columns.image, table);
  const std::size_t patient = optional(columns.patient);
  const std::size_t age = optional(columns.age);
  const std::size_t sex = optional(columns.sex);
  const std::size_t view = optional(columns.view);
  const std::size_t lateral =
      chexpert ? column(header, "Frontal/Lateral", table) : std::string::npos;
  std::vector<std::size_t> label_columns;
  if (columns.findings.empty()) {
    for (std::size_t c = 0; c < header.size(); ++c) {
      if (c == image || c == patient || c == age || c == sex || c == view ||
          c == lateral)
        continue;
      m.findings.push_back(header[c]);
      label_columns.push_back(c);
    }
  } else {
    for (const auto& name : columns.findings) {
      m.findings.push_back(name);
      label_columns.push_back(column(header, name, table));
    }
  }
  if (label_columns.empty())
    table.fail("no column with findings",
               "name them in data.manifest.columns.findings");
  if (const auto doubled = doubled_finding(m.findings); !doubled.empty())
    table.fail("finding " + doubled, "each finding has one column");
  m.knows_patients = chexpert || patient != std::string::npos;
  while (csv.next(fields)) {
    table.line = csv.line();
    if (fields.size() != header.size())
      table.fail("row has " + std::to_string(fields.size()) +
                     " fields, the header " + std::to_string(header.size()),
                 "the row is damaged or cut off");
    const auto name = trimmed(fields[image]);
    std::string of_patient(name);
    if (chexpert)
      of_patient = chexpert_patient(name, table);
    else if (patient != std::string::npos)
      of_patient = fields[patient];
    add_row(m, table, name, of_patient);
    for (std::size_t k = 0; k < label_columns.size(); ++k)
      m.labels.push_back(
          parse_label(fields[label_columns[k]], table, m.findings[k]));
    const auto cell = [&](std::size_t c) {
      return std::string(c == std::string::npos ? std::string_view{}
                                                : trimmed(fields[c]));
    };
    m.ages.push_back(parse_age(cell(age)));
    m.sexes.push_back(cell(sex));
    m.views.push_back(cell(view));
  }
}

// Keeps `wanted` findings, in that order and under these names.
void select_findings(Manifest& m, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return;
  refuse_doubled(wanted, "data.findings");
  std::vector<std::size_t> from;
  for (const auto& name : wanted) {
    const auto found = find_finding(m.findings, name);
    if (!found)
      throw ConfigError("[config] data.findings: " + m.path +
                        " has no finding '" + name + "'. Hint: nearest are " +
                        nearest_names(name, m.findings));
    from.push_back(*found);
  }
  m.labels = columns_of(m.labels, m.finding_count(), from);
  m.findings = wanted;
}

}  // namespace

const std::vector<std::string>& nih_findings() {
  static const std::vector<std::string> names = {"Atelectasis",
                                                 "Cardiomegaly",
                                                 "Effusion",
                                                 "Infiltration",
                                                 "Mass",
                                                 "Nodule",
                                                 "Pneumonia",
                                                 "Pneumothorax",
                                                 "Consolidation",
                                                 "Edema",
                                                 "Emphysema",
                                                 "Fibrosis",
                                                 "Pleural_Thickening",
                                                 "Hernia"};
  return names;
}

Manifest read_manifest(const DataConfig& config, const EvalConfig& eval) {
  Manifest m;
  m.path = config.manifest.path;
  m.tables = {{m.path, 0}};
  const std::string text = read_text(m.path);
  m.sha256 = sha256_hex(text);
  if (const std::size_t line = line_not_utf8(text); line > 0)
    Table{m.path, static_cast<int>(line)}.fail("is not UTF-8",
                                               "save the table as UTF-8");
  const auto rows =
      static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  m.rows.reserve(rows);
  m.lines.reserve(rows);
  m.images.reserve(rows);
  m.patients.reserve(rows);
  if (config.manifest.format == ManifestFormat::kNih)
    read_nih(text, m);
  else
    read_columns(text, config, m);
  if (m.size() == 0)
    throw DataError("[manifest] " + m.path +
                    ": no rows below the header. Hint: is the file complete?");
  select_findings(m, config.findings);
  apply_policies(m, config, eval);
  return m;
}

}  // namespace chexnet
