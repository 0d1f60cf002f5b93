// Tables with one column per finding.
#include <algorithm>
#include <string_view>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "labels.hpp"
#include "table_rows.hpp"

namespace chexnet {
namespace {

// A label cell of CheXpert or a plain table.
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
        "are findings, columns.age, .sex and .view some that are not");
  return *value;
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

// What to do about a column of data.manifest.columns that is not there.
std::string other_name(const std::string& key) {
  return ". Another name: --set data.manifest.columns." + key + "=NAME";
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
    layout.labels.push_back(
        column(layout.header, name, table, other_name("findings")));
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
  const auto named = [&](const std::string& name, const char* key) {
    return column(layout.header, name, table,
                  chexpert ? kOtherLayout : other_name(key));
  };
  const auto optional = [&](const std::string& name, const char* key) {
    return name.empty() ? std::string::npos : named(name, key);
  };
  layout.image = named(columns.image, "image");
  layout.patient = optional(columns.patient, "patient");
  layout.age = optional(columns.age, "age");
  layout.sex = optional(columns.sex, "sex");
  layout.view = optional(columns.view, "view");
  layout.weight = weight_column(layout.header, file, table);
  const size_t lateral = optional(chexpert ? "Frontal/Lateral" : "", "");
  if (columns.findings.empty())
    take_others(lateral, layout, m);
  else
    take_named(columns, may_lack, table, layout, m);
  if (layout.labels.empty())
    table.fail("no column with findings",
               "name them: --set data.manifest.columns.findings=[A,B]");
  if (const auto doubled = doubled_finding(m.findings); !doubled.empty())
    table.fail("finding " + doubled, "each finding has one column");
  return layout;
}

}  // namespace

void read_columns(const std::string& text, const TableFile& file, bool may_lack,
                  RowChoice& choice, Manifest& m) {
  const bool chexpert = file.format == ManifestFormat::kChexpert;
  CsvReader csv(text, m.path, separator_of(text));
  std::vector<std::string_view> fields;
  Table table{m.path};
  if (!csv.next(fields))
    table.fail("the file is empty", "a table with a header line is needed");
  const Layout layout = layout_of(fields, file, may_lack, table, m);
  choice.begin_table(m.path, layout.header,
                     {layout.image, layout.age, layout.sex, layout.view});
  m.knows_patients = chexpert || layout.patient != std::string::npos;
  while (csv.next(fields)) {
    table.line = csv.line();
    if (fields.size() != layout.header.size())
      table.fail(
          formatted("row has {}, the header {}",
                    counted(std::ssize(fields), "field"), layout.header.size()),
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

}  // namespace chexnet
