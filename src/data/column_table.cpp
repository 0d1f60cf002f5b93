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

// "…/patient00001/study1/view1_frontal.jpg" -> "study1", empty where the path
// has no such folder
std::string_view chexpert_study(std::string_view path) {
  const auto end = path.rfind('/');
  if (end == std::string_view::npos) return {};
  const auto folder = path.substr(0, end);
  const auto name = folder.substr(folder.rfind('/') + 1);
  return name.starts_with("study") ? name : std::string_view{};
}

// What to do about a column of data.manifest.columns that is not there.
std::string other_name(const std::string& key) {
  return ". Another name: --set data.manifest.columns." + key + "=NAME";
}

// Columns of a table with one column per finding.
struct Layout {
  // npos where there is none
  size_t image, patient, age, sex, view, study, weight;
  std::vector<size_t> labels;  // [K]
};

// The findings of `columns` that the header has; all must be there unless
// `may_lack`.
void take_named(const ColumnsConfig& columns, bool may_lack,
                const TableRows& rows, Layout& layout, Manifest& m) {
  for (const auto& name : columns.findings) {
    if (may_lack && std::ranges::find(rows.header, name) == rows.header.end())
      continue;
    m.findings.push_back(name);
    layout.labels.push_back(
        column(rows.header, name, rows.table, other_name("findings")));
  }
}

// A data set's names of columns.
ColumnsConfig columns_of(const TableFile& file) {
  if (file.format == ManifestFormat::kChexpert)
    return {"Path", "", {}, "Age", "Sex", "AP/PA", ""};
  if (file.format == ManifestFormat::kBrax)
    return {"PngPath",    "PatientID",    chexpert_findings(), "PatientAge",
            "PatientSex", "ViewPosition", "AccessionNumber"};
  return file.columns;
}

Layout layout_of(const TableRows& rows, const TableFile& file, bool may_lack,
                 Manifest& m) {
  const bool chexpert = file.format == ManifestFormat::kChexpert;
  const ColumnsConfig columns = columns_of(file);
  Layout layout;
  const auto named = [&](const std::string& name, const char* key) {
    return column(
        rows.header, name, rows.table,
        file.format == ManifestFormat::kCsv ? other_name(key) : kOtherLayout);
  };
  const auto optional = [&](const std::string& name, const char* key) {
    return name.empty() ? std::string::npos : named(name, key);
  };
  layout.image = named(columns.image, "image");
  layout.patient = optional(columns.patient, "patient");
  layout.age = optional(columns.age, "age");
  layout.sex = optional(columns.sex, "sex");
  layout.view = optional(columns.view, "view");
  layout.study = file.format == ManifestFormat::kCsv
                     ? optional(columns.study, "study")
                     : optional_column(rows.header, columns.study, rows.table);
  layout.weight = optional_column(rows.header, file.sample_weight, rows.table);
  const std::string hint =
      "name them: --set data.manifest.columns.findings=[A,B]";
  if (columns.findings.empty()) {
    layout.labels =
        take_findings(rows,
                      {layout.image, layout.patient, layout.age, layout.sex,
                       layout.view, layout.study, layout.weight,
                       optional(chexpert ? "Frontal/Lateral" : "", "")},
                      hint, m);
    return layout;
  }
  take_named(columns, may_lack && file.format == ManifestFormat::kCsv, rows,
             layout, m);
  check_findings(rows.table, hint, m);
  return layout;
}

}  // namespace

void read_columns(const std::string& text, const TableFile& file, bool may_lack,
                  RowChoice& choice, Manifest& m) {
  const bool chexpert = file.format == ManifestFormat::kChexpert;
  TableRows rows(text, m.path);
  const Layout layout = layout_of(rows, file, may_lack, m);
  choice.begin_table(m.path, rows.header,
                     {layout.image, layout.age, layout.sex, layout.view});
  m.knows_patients = chexpert || layout.patient != std::string::npos;
  while (rows.next()) {
    const auto name = rows.cell(layout.image);
    std::string of_patient(name);
    if (chexpert)
      of_patient = chexpert_patient(name, rows.table);
    else if (layout.patient != std::string::npos)
      of_patient = rows.fields[layout.patient];
    if (!add_row(m, rows.table, choice, rows.fields, name, of_patient))
      continue;
    for (size_t k = 0; k < layout.labels.size(); ++k)
      m.labels.push_back(parse_label(rows.fields[layout.labels[k]], rows.table,
                                     m.findings[k]));
    push_weight(rows.fields, layout.weight, rows.table, file, m);
    push_known({parse_age(rows.cell(layout.age)), rows.cell(layout.sex),
                rows.cell(layout.view),
                chexpert ? chexpert_study(name) : rows.cell(layout.study)},
               m);
  }
}

}  // namespace chexnet
