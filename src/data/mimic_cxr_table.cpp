// MIMIC-CXR-JPG: a row per study; views and splits in tables beside it.
// docs/labels.md says where each fact is from and what nobody has checked.
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "labels.hpp"
#include "table_rows.hpp"

namespace chexnet {
namespace {

// "…/mimic-cxr-2.0.0-chexpert.csv.gz" -> "…/mimic-cxr-2.0.0-split.csv.gz"
std::string beside(const std::string& path, const char* what) {
  const size_t end = path.find(".csv", path.rfind('/') + 1);
  for (const char* labels : {"-chexpert", "-negbio"})
    if (path.substr(0, end).ends_with(labels))
      return path.substr(0, end - std::string_view(labels).size()) + what +
             path.substr(end);
  throw ConfigError(
      "[config] data.manifest.path: {} is no table of labels of MIMIC-CXR-JPG "
      "that the program reads. Hint: mimic-cxr-2.0.0-chexpert.csv.gz or "
      "-negbio, with the tables -metadata and -split beside it",
      path);
}

struct Study {
  std::string subject;
  size_t begin;  // of its labels in `values`
};
struct StudyLabels {
  std::unordered_map<std::string, Study> studies;
  std::vector<float> values;
};

StudyLabels read_studies(const std::string& text, Manifest& m) {
  TableRows rows(text, m.path);
  const size_t subject = rows.column("subject_id"),
               study = rows.column("study_id");
  const auto columns =
      take_findings(rows, {subject, study}, "is this the table of labels?", m);
  StudyLabels labels;
  while (rows.next()) {
    const std::string id(rows.cell(study));
    if (!labels.studies
             .emplace(id, Study{std::string(rows.cell(subject)),
                                labels.values.size()})
             .second)
      rows.table.fail("study " + id + " appears twice", "remove one row");
    for (size_t k = 0; k < columns.size(); ++k)
      labels.values.push_back(
          parse_label(rows.fields[columns[k]], rows.table, m.findings[k]));
  }
  return labels;
}

struct OfficialSplit {
  SplitName name;
  std::string study;
};

// By image.
std::unordered_map<std::string, OfficialSplit> read_splits(
    const std::string& text, const std::string& path) {
  static const std::map<std::string_view, SplitName> kNames = {
      {"train", SplitName::kTrain},
      {"validate", SplitName::kVal},
      {"test", SplitName::kTest}};
  TableRows rows(text, path);
  const size_t image = rows.column("dicom_id"), study = rows.column("study_id"),
               split = rows.column("split");
  std::unordered_map<std::string, OfficialSplit> splits;
  while (rows.next()) {
    const auto name = kNames.find(rows.cell(split));
    if (name == kNames.end())
      rows.table.fail(formatted("no split '{}'", rows.cell(split)),
                      "train, validate or test");
    const OfficialSplit official{name->second, std::string(rows.cell(study))};
    if (!splits.emplace(rows.cell(image), official).second)
      rows.table.fail("its image appears twice", "remove one row");
  }
  return splits;
}

}  // namespace

void read_mimic_cxr(const std::string& text, const TableFile& file,
                    const S3Config& s3, RowChoice& choice, Manifest& m) {
  const std::string of_splits = beside(m.path, "-split"),
                    of_views = beside(m.path, "-metadata");
  const StudyLabels labels = read_studies(text, m);
  const std::string split_text = utf8_table(of_splits, s3),
                    view_text = utf8_table(of_views, s3);
  m.sha256 =
      sha256_hex(m.sha256 + sha256_hex(split_text) + sha256_hex(view_text));
  const auto splits = read_splits(split_text, of_splits);
  if (file.split)
    log_info(m.path +
             " has splits of its own: data.manifest.split does not "
             "count for it");
  m.tables = {{of_views, 0, true}};
  TableRows rows(view_text, of_views);
  const size_t image = rows.column("dicom_id"),
               subject = rows.column("subject_id"),
               study = rows.column("study_id"),
               view = rows.column("ViewPosition"),
               weight =
                   optional_column(rows.header, file.sample_weight, rows.table);
  choice.begin_table(of_views, rows.header, {.image = image, .view = view});
  int64_t unlabeled = 0;
  std::set<std::string> unknown_studies;
  while (rows.next()) {
    const std::string dicom(rows.cell(image)), patient(rows.cell(subject)),
        of_study(rows.cell(study));
    const auto split = splits.find(dicom);
    if (split == splits.end())
      rows.table.fail("its image is in no split",
                      "take all tables of one release: " + of_splits);
    if (split->second.study != of_study)
      rows.table.fail("its image is of another study in " + of_splits,
                      "take all tables of one release");
    const std::string path = "files/p" + patient.substr(0, 2) + "/p" + patient +
                             "/s" + of_study + "/" + dicom + ".jpg";
    const auto said = labels.studies.find(of_study);
    if (said == labels.studies.end()) {
      m.left_out.insert(path);
      unknown_studies.insert(of_study);
      ++unlabeled;
      continue;
    }
    if (said->second.subject != patient)
      rows.table.fail("its study is of another patient in " + m.path,
                      "take all tables of one release");
    if (!add_row(m, rows.table, choice, rows.fields, path, patient)) continue;
    m.splits.emplace_back(split->second.name);
    const auto begin =
        labels.values.begin() + static_cast<std::ptrdiff_t>(said->second.begin);
    m.labels.insert(m.labels.end(), begin,
                    begin + static_cast<std::ptrdiff_t>(m.finding_count()));
    push_weight(rows.fields, weight, rows.table, file, m);
    push_known({.age = kUnlabeled, .view = rows.cell(view), .study = of_study},
               m);
  }
  constexpr size_t kUsual = 8;  // studies of release 2.0.0 have no row
  if (unknown_studies.size() > kUsual)
    log_warning(m.path + " lacks " + std::to_string(unknown_studies.size()) +
                " studies of " + of_views + ", and as published " +
                std::to_string(kUsual) + ": is it cut off?");
  log_left_out(m, unlabeled, "their studies have no labels");
}

}  // namespace chexnet
