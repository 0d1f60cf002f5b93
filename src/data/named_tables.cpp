// Tables of public data sets that have a form of their own, as downloaded.
// docs/labels.md says where each fact is from and what nobody has checked.
#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/table_text.hpp"
#include "labels.hpp"
#include "table_rows.hpp"

namespace chexnet {
namespace {

// Image names of a data set that take no part, whatever the config says.
void say_left_out(const Manifest& m, size_t images, const std::string& why) {
  if (images > 0)
    log_info(m.path + ": " + counted(static_cast<int64_t>(images), "image") +
             " left out: " + why);
}

// Every column but the first ones is a finding.
std::vector<size_t> take_findings(const TableRows& rows,
                                  const std::vector<size_t>& others,
                                  Manifest& m) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < rows.header.size(); ++c) {
    if (std::ranges::find(others, c) != others.end()) continue;
    columns.push_back(c);
    m.findings.push_back(rows.header[c]);
  }
  if (const auto doubled = doubled_finding(m.findings); !doubled.empty())
    rows.table.fail("finding " + doubled, "each finding has one column");
  if (columns.empty())
    rows.table.fail("no column with findings", "is this the table of labels?");
  return columns;
}

// ---- MIMIC-CXR-JPG: a row per study; views and splits in tables beside it.

// "…/mimic-cxr-2.0.0-chexpert.csv.gz" -> "…/mimic-cxr-2.0.0-split.csv.gz"
std::string beside(const std::string& path, const char* what) {
  const size_t name = path.rfind('/') + 1;  // 0 where there is no folder
  const size_t dash = path.rfind('-');
  if (dash == std::string::npos || dash < name)
    throw ConfigError(
        "[config] data.manifest.path: {} is no table of labels of "
        "MIMIC-CXR-JPG. Hint: mimic-cxr-2.0.0-chexpert.csv.gz, with the "
        "tables -metadata and -split beside it",
        path);
  const size_t dot = path.find('.', dash);
  return path.substr(0, dash + 1) + what +
         (dot == std::string::npos ? "" : path.substr(dot));
}

// [study]: where its labels begin in `values`.
struct StudyLabels {
  std::unordered_map<std::string, size_t> begin;
  std::vector<float> values;
};

StudyLabels read_studies(const std::string& text, Manifest& m) {
  TableRows rows(text, m.path);
  const size_t subject = rows.column("subject_id"),
               study = rows.column("study_id");
  const auto columns = take_findings(rows, {subject, study}, m);
  StudyLabels labels;
  while (rows.next()) {
    const std::string id(rows.cell(study));
    if (!labels.begin.emplace(id, labels.values.size()).second)
      rows.table.fail("study " + id + " appears twice", "remove one row");
    for (size_t k = 0; k < columns.size(); ++k)
      labels.values.push_back(
          parse_label(rows.fields[columns[k]], rows.table, m.findings[k]));
  }
  return labels;
}

constexpr std::array<std::pair<std::string_view, SplitName>, 3> kMimicSplits = {
    {{"train", SplitName::kTrain},
     {"validate", SplitName::kVal},
     {"test", SplitName::kTest}}};

std::unordered_map<std::string, SplitName> read_splits(
    const std::string& text, const std::string& path) {
  TableRows rows(text, path);
  const size_t image = rows.column("dicom_id"), split = rows.column("split");
  std::unordered_map<std::string, SplitName> splits;
  while (rows.next()) {
    const auto known =
        std::ranges::find(kMimicSplits, rows.cell(split),
                          &std::pair<std::string_view, SplitName>::first);
    if (known == kMimicSplits.end())
      rows.table.fail(formatted("no split '{}'", rows.cell(split)),
                      "train, validate or test");
    splits.emplace(rows.cell(image), known->second);
  }
  return splits;
}

}  // namespace

void read_mimic_cxr(const std::string& text, const TableFile& file,
                    const S3Config& s3, RowChoice& choice, Manifest& m) {
  const StudyLabels labels = read_studies(text, m);
  const std::string of_splits = beside(m.path, "split"),
                    of_views = beside(m.path, "metadata");
  const std::string split_text = table_text(of_splits, s3),
                    view_text = table_text(of_views, s3);
  m.sha256 =
      sha256_hex(m.sha256 + sha256_hex(split_text) + sha256_hex(view_text));
  const auto splits = read_splits(split_text, of_splits);
  size_t unlabeled = 0;
  m.tables.clear();
  // Once for each split, so that its rows stand together.
  for (const auto& [name, split] : kMimicSplits) {
    m.tables.push_back({of_views, m.size(), file.split ? file.split : split});
    TableRows rows(view_text, of_views);
    const size_t image = rows.column("dicom_id"),
                 subject = rows.column("subject_id"),
                 study = rows.column("study_id"),
                 view = rows.column("ViewPosition");
    if (split == SplitName::kTrain)
      choice.begin_table(of_views, rows.header, {.image = image, .view = view});
    while (rows.next()) {
      const std::string dicom(rows.cell(image)), patient(rows.cell(subject)),
          of_study(rows.cell(study));
      const auto own = splits.find(dicom);
      if (own == splits.end())
        rows.table.fail("its image is in no split",
                        "take all tables of one release: " + of_splits);
      if (own->second != split) continue;
      const std::string path = "files/p" + patient.substr(0, 2) + "/p" +
                               patient + "/s" + of_study + "/" + dicom + ".jpg";
      const auto said = labels.begin.find(of_study);
      if (said == labels.begin.end()) {
        m.left_out.insert(path);
        ++unlabeled;
        continue;
      }
      if (!add_row(m, rows.table, choice, rows.fields, path, patient)) continue;
      const auto begin =
          labels.values.begin() + static_cast<std::ptrdiff_t>(said->second);
      m.labels.insert(m.labels.end(), begin,
                      begin + static_cast<std::ptrdiff_t>(m.finding_count()));
      m.ages.push_back(kUnlabeled);
      m.sexes.emplace_back();
      m.views.emplace_back(rows.cell(view));
    }
  }
  say_left_out(m, unlabeled, "their studies have no labels");
}

// ---- PadChest: a list of words per image.

namespace {

// What counts as a finding of ChestX-ray14. Words are equal or not: parts of
// words would make a nodule of a pseudonodule.
constexpr std::pair<std::string_view, std::string_view> kPadchestWords[] = {
    {"Atelectasis", "atelectasis"},
    {"Atelectasis", "total atelectasis"},
    {"Atelectasis", "lobar atelectasis"},
    {"Atelectasis", "segmental atelectasis"},
    {"Atelectasis", "laminar atelectasis"},
    {"Atelectasis", "round atelectasis"},
    {"Atelectasis", "atelectasis basal"},
    {"Cardiomegaly", "cardiomegaly"},
    {"Effusion", "pleural effusion"},
    {"Effusion", "loculated pleural effusion"},
    {"Effusion", "loculated fissural effusion"},
    {"Effusion", "hydropneumothorax"},
    {"Effusion", "empyema"},
    {"Effusion", "hemothorax"},
    {"Infiltration", "infiltrates"},
    {"Infiltration", "interstitial pattern"},
    {"Infiltration", "ground glass pattern"},
    {"Infiltration", "reticular interstitial pattern"},
    {"Infiltration", "reticulonodular interstitial pattern"},
    {"Infiltration", "miliary opacities"},
    {"Infiltration", "alveolar pattern"},
    {"Mass", "pulmonary mass"},
    {"Nodule", "nodule"},
    {"Nodule", "multiple nodules"},
    {"Pneumonia", "pneumonia"},
    {"Pneumonia", "atypical pneumonia"},
    {"Pneumothorax", "pneumothorax"},
    {"Pneumothorax", "hydropneumothorax"},
    {"Consolidation", "consolidation"},
    {"Consolidation", "air bronchogram"},
    {"Edema", "pulmonary edema"},
    {"Emphysema", "emphysema"},
    {"Fibrosis", "pulmonary fibrosis"},
    {"Fibrosis", "asbestosis signs"},
    {"Fibrosis", "post radiotherapy changes"},
    {"Pleural_Thickening", "pleural thickening"},
    {"Pleural_Thickening", "apical pleural thickening"},
    {"Pleural_Thickening", "calcified pleural thickening"},
    {"Hernia", "hiatal hernia"},
};

// Files that are cut off as published, by three independent lists of loaders.
constexpr std::string_view kUnreadable[] = {
    "216840111366964012283393834152009033102258826_00-059-087",
    "216840111366964012339356563862009072111404053_00-043-192",
    "216840111366964012373310883942009117084022290_00-064-025",
    "216840111366964012373310883942009152114636712_00-102-045",
    "216840111366964012373310883942009170084120009_00-097-074",
    "216840111366964012487858717522009280135853083_00-075-001",
    "216840111366964012558082906712009327122220177_00-102-064",
    "216840111366964012819207061112010281134410801_00-129-131",
    "216840111366964012819207061112010306085429121_04-020-102",
    "216840111366964012819207061112010307142602253_04-014-084",
    "216840111366964012819207061112010315104455352_04-024-184",
    "216840111366964012959786098432011033083840143_00-176-115",
    "216840111366964012989926673512011074122523403_00-163-058",
    "216840111366964012989926673512011083134050913_00-168-009",
    "216840111366964012989926673512011151082430686_00-157-045",
    "216840111366964013076187734852011291090445391_00-196-188",
    "216840111366964013590140476722013043111952381_02-065-198",
    "216840111366964013590140476722013058110301622_02-056-111",
    "216840111366964013686042548532013208193054515_02-026-007",
    "216840111366964013829543166512013353113303615_02-092-190",
    "216840111366964013962490064942014134093945580_01-178-104",
};

// "['normal', ' pleural effusion']" -> normal, pleural effusion
std::vector<std::string_view> words_of(std::string_view list) {
  constexpr std::string_view kAround = " \t\r\n[]'\"";
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const auto comma = list.find(',');
    std::string_view word = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size()
                                                       : comma + 1);
    const auto begin = word.find_first_not_of(kAround);
    if (begin == std::string_view::npos) continue;
    words.push_back(
        word.substr(begin, word.find_last_not_of(kAround) - begin + 1));
  }
  return words;
}

// [K] after what the words say; all blank where there are none.
void push_labels(const std::vector<std::string_view>& words, Manifest& m) {
  const size_t at = m.labels.size();
  m.labels.resize(at + m.finding_count(), words.empty() ? kUnlabeled : 0.0f);
  for (const auto& [finding, word] : kPadchestWords)
    if (std::ranges::find(words, word) != words.end())
      m.labels[at + static_cast<size_t>(std::ranges::find(m.findings, finding) -
                                        m.findings.begin())] = 1;
}

// "20080512", "1930.0" -> 78
float age_of(std::string_view day, std::string_view birth) {
  const float then = parse_age(day.substr(0, 4)), born = parse_age(birth);
  return then - born;  // NaN where one is not known
}

}  // namespace

void read_padchest(const std::string& text, RowChoice& choice, Manifest& m) {
  TableRows rows(text, m.path);
  const size_t image = rows.column("ImageID"), folder = rows.column("ImageDir"),
               day = rows.column("StudyDate_DICOM"),
               patient = rows.column("PatientID"),
               birth = rows.column("PatientBirth"),
               sex = rows.column("PatientSex_DICOM"),
               view = rows.column("Projection"), labels = rows.column("Labels");
  m.findings = nih_findings();
  choice.begin_table(m.path, rows.header,
                     {.image = image, .sex = sex, .view = view});
  const std::unordered_set<std::string_view> unreadable(std::begin(kUnreadable),
                                                        std::end(kUnreadable));
  size_t damaged = 0, excluded = 0;
  while (rows.next()) {
    const std::string_view name = rows.cell(image);
    const std::string path =
        std::string(rows.cell(folder)) + "/" + std::string(name);
    const auto words = words_of(rows.fields[labels]);
    const bool is_damaged =
        unreadable.contains(name.substr(0, name.rfind(".png")));
    if (is_damaged || std::ranges::find(words, "exclude") != words.end()) {
      ++(is_damaged ? damaged : excluded);
      m.left_out.insert(path);
      continue;
    }
    if (!add_row(m, rows.table, choice, rows.fields, path,
                 rows.fields[patient]))
      continue;
    push_labels(words, m);
    m.ages.push_back(age_of(rows.cell(day), rows.cell(birth)));
    m.sexes.emplace_back(rows.cell(sex));
    m.views.emplace_back(rows.cell(view));
  }
  say_left_out(m, damaged, "their files are known to be cut off");
  say_left_out(m, excluded, "the table says 'exclude'");
}

// ---- VinDr-CXR: three readers an image for training, their consensus for
// test.

void read_vindr(const std::string& text, RowChoice& choice, Manifest& m) {
  TableRows rows(text, m.path);
  const size_t image = rows.column("image_id");
  std::vector<size_t> others = {image};
  for (const char* name : {"rad_id", "No finding"})
    if (const auto found = std::ranges::find(rows.header, name);
        found != rows.header.end())
      others.push_back(static_cast<size_t>(found - rows.header.begin()));
  const auto columns = take_findings(rows, others, m);
  for (auto& name : m.findings) {  // of the table for test, and of ChestX-ray14
    if (name == "Other disease") name = "Other diseases";
    if (name == "Pulmonary fibrosis") name = "Fibrosis";
  }
  choice.begin_table(m.path, rows.header, {.image = image});
  m.knows_patients = false;
  std::unordered_map<std::string, size_t> row_of;  // npos: left out
  std::vector<float> readers;                      // [row]
  while (rows.next()) {
    const std::string id(rows.cell(image));
    const auto [place, is_new] = row_of.emplace(id, std::string::npos);
    if (is_new &&
        add_row(m, rows.table, choice, rows.fields, id + ".png", id)) {
      place->second = m.size() - 1;
      m.labels.resize(m.labels.size() + columns.size(), 0.0f);
      readers.push_back(0);
      m.ages.push_back(kUnlabeled);
      m.sexes.emplace_back();
      m.views.emplace_back("PA");  // all of them
    }
    if (place->second == std::string::npos) continue;
    ++readers[place->second];
    for (size_t k = 0; k < columns.size(); ++k) {
      const float said =
          parse_label(rows.fields[columns[k]], rows.table, m.findings[k]);
      if (said != 0 && said != 1)
        rows.table.fail(formatted("{} is neither 0 nor 1", m.findings[k]),
                        "VinDr-CXR's readers say one of the two");
      m.labels[place->second * columns.size() + k] += said;
    }
  }
  for (size_t row = 0; row < m.size(); ++row)
    for (size_t k = 0; k < columns.size(); ++k) {
      float& label = m.labels[row * columns.size() + k];
      label = 2 * label > readers[row] ? 1.0f : 0.0f;
    }
}

}  // namespace chexnet
