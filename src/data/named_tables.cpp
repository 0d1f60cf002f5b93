// Tables of public data sets that have a form of their own, as downloaded.
// docs/labels.md says where each fact is from and what nobody has checked.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
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

void push_weight(const TableRows& rows, size_t column, const TableFile& file,
                 Manifest& m) {
  if (column != std::string::npos)
    m.sample_weights.push_back(
        parse_weight(rows.fields[column], rows.table, file.sample_weight));
}

// ---- MIMIC-CXR-JPG: a row per study; views and splits in tables beside it.

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

// A table that lies beside the labels.
std::string side_table(const std::string& path, const S3Config& s3) {
  std::string text = table_text(path, s3);
  if (const size_t line = line_not_utf8(text); line > 0)
    Table{path, static_cast<int>(line)}.fail("is not UTF-8",
                                             "save the table as UTF-8");
  return text;
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
  const auto columns = take_findings(rows, {subject, study}, m);
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
    if (!splits.emplace(rows.cell(image), known->second).second)
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
  const std::string split_text = side_table(of_splits, s3),
                    view_text = side_table(of_views, s3);
  m.sha256 =
      sha256_hex(m.sha256 + sha256_hex(split_text) + sha256_hex(view_text));
  const auto splits = read_splits(split_text, of_splits);
  if (file.split)
    log_info(m.path +
             " has splits of its own: data.manifest.split does not "
             "count for it");
  size_t unlabeled = 0;
  std::set<std::string> unknown_studies;
  m.tables.clear();
  // Once for each split, so that its rows stand together.
  for (const auto& [name, split] : kMimicSplits) {
    const bool is_cut_anew = split == SplitName::kVal && file.is_folded;
    m.tables.push_back(
        {of_views, m.size(), is_cut_anew ? SplitName::kTrain : split});
    TableRows rows(view_text, of_views);
    const size_t image = rows.column("dicom_id"),
                 subject = rows.column("subject_id"),
                 study = rows.column("study_id"),
                 view = rows.column("ViewPosition"),
                 weight = weight_column(rows.header, file, rows.table);
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
      const auto begin = labels.values.begin() +
                         static_cast<std::ptrdiff_t>(said->second.begin);
      m.labels.insert(m.labels.end(), begin,
                      begin + static_cast<std::ptrdiff_t>(m.finding_count()));
      push_weight(rows, weight, file, m);
      m.ages.push_back(kUnlabeled);
      m.sexes.emplace_back();
      m.views.emplace_back(rows.cell(view));
    }
  }
  constexpr size_t kUsual = 8;  // studies of release 2.0.0 have no row
  if (unknown_studies.size() > kUsual)
    log_warning(m.path + " lacks " + std::to_string(unknown_studies.size()) +
                " studies of " + of_views + ", and as published " +
                std::to_string(kUsual) + ": is it cut off?");
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

// "['normal', ' Pleural effusion']" -> normal, pleural effusion
std::vector<std::string> words_of(std::string_view list, const Table& table) {
  const auto refuse = [&] {
    table.fail(formatted("Labels: {} is no list of words", list),
               "PadChest writes ['nodule', 'cardiomegaly']");
  };
  const auto stripped = [](std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const auto begin = text.find_first_not_of(kBlank);
    return begin == std::string_view::npos
               ? std::string_view{}
               : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
  };
  std::vector<std::string> words;
  std::string_view rest = stripped(list);
  if (rest.empty()) return words;
  if (rest.size() < 2 || !rest.starts_with('[') || !rest.ends_with(']'))
    refuse();
  rest = stripped(rest.substr(1, rest.size() - 2));
  while (!rest.empty()) {
    const char quote = rest.front();
    const auto end = rest.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos)
      refuse();
    words.push_back(lowered(std::string(stripped(rest.substr(1, end - 1)))));
    rest = stripped(rest.substr(end + 1));
    if (rest.empty()) break;
    if (rest.front() != ',') refuse();
    rest = stripped(rest.substr(1));
  }
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// [K] after what the words say. What they do not name is absent, unless they
// say that they do not tell: nothing at all, "as before", or too bad a picture.
void push_labels(const std::vector<std::string>& words, Manifest& m) {
  const bool tells = !words.empty() && !has(words, "unchanged") &&
                     !has(words, "suboptimal study");
  const size_t at = m.labels.size();
  m.labels.resize(at + m.finding_count(), tells ? 0.0f : kUnlabeled);
  for (const auto& [finding, word] : kPadchestWords)
    if (has(words, word))
      m.labels[at + static_cast<size_t>(std::ranges::find(m.findings, finding) -
                                        m.findings.begin())] = 1;
}

// "20080512", "1930.0" -> 78
float age_of(std::string_view day, std::string_view birth) {
  const float then = parse_age(day.substr(0, 4)), born = parse_age(birth);
  return then - born;  // NaN where one is not known
}

}  // namespace

void read_padchest(const std::string& text, const TableFile& file,
                   RowChoice& choice, Manifest& m) {
  TableRows rows(text, m.path);
  const size_t image = rows.column("ImageID"), folder = rows.column("ImageDir"),
               day = rows.column("StudyDate_DICOM"),
               patient = rows.column("PatientID"),
               birth = rows.column("PatientBirth"),
               sex = rows.column("PatientSex_DICOM"),
               view = rows.column("Projection"), labels = rows.column("Labels"),
               weight = weight_column(rows.header, file, rows.table);
  m.findings = nih_findings();
  auto header = rows.header;
  header.emplace_back("age");  // which the table has not
  choice.begin_table(
      m.path, header,
      {.image = image, .age = rows.header.size(), .sex = sex, .view = view});
  const std::unordered_set<std::string_view> unreadable(std::begin(kUnreadable),
                                                        std::end(kUnreadable));
  size_t damaged = 0, excluded = 0;
  while (rows.next()) {
    const std::string_view name = rows.cell(image);
    const std::string path =
        std::string(rows.cell(folder)) + "/" + std::string(name);
    const auto words = words_of(rows.fields[labels], rows.table);
    const bool is_damaged =
        unreadable.contains(name.substr(0, name.rfind(".png")));
    if (is_damaged || has(words, "exclude")) {
      ++(is_damaged ? damaged : excluded);
      m.left_out.insert(path);
      continue;
    }
    const float age = age_of(rows.cell(day), rows.cell(birth));
    const std::string age_text = csv_number(age);
    auto fields = rows.fields;
    fields.emplace_back(age_text);
    if (!add_row(m, rows.table, choice, fields, path, rows.fields[patient]))
      continue;
    push_labels(words, m);
    push_weight(rows, weight, file, m);
    m.ages.push_back(age);
    m.sexes.emplace_back(rows.cell(sex));
    m.views.emplace_back(rows.cell(view));
  }
  say_left_out(m, damaged, "their files are known to be cut off");
  say_left_out(m, excluded, "the table says 'exclude'");
}

// ---- VinDr-CXR: three readers an image for training, their consensus for
// test.

namespace {

// What the readers of each image say: [row].
struct Votes {
  std::unordered_map<std::string, size_t> row_of;  // npos: left out
  std::unordered_set<std::string> cast;            // by image and reader
  std::vector<int> readers;
};

// Labels hold the number of readers who see the finding.
void decide_votes(const Votes& votes, Manifest& m) {
  const size_t findings = m.finding_count();
  for (size_t row = 0; row < m.size(); ++row)
    for (size_t k = 0; k < findings; ++k) {
      float& label = m.labels[row * findings + k];
      label = 2 * label > static_cast<float>(votes.readers[row]) ? 1.0f : 0.0f;
    }
  const auto [least, most] = std::ranges::minmax(votes.readers);
  if (least != most)
    log_warning(m.path + ": some images have " + counted(least, "reader") +
                ", others " + std::to_string(most) + ": is it cut off?");
}

// A column, or npos.
size_t optional_column(const TableRows& rows, const char* name) {
  const auto found = std::ranges::find(rows.header, name);
  return found == rows.header.end()
             ? std::string::npos
             : static_cast<size_t>(found - rows.header.begin());
}

}  // namespace

void read_vindr(const std::string& text, const TableFile& file,
                RowChoice& choice, Manifest& m) {
  TableRows rows(text, m.path);
  for (auto& name : rows.header) {  // of the table for test, of ChestX-ray14
    if (name == "Other disease") name = "Other diseases";
    if (name == "Pulmonary fibrosis") name = "Fibrosis";
  }
  const size_t image = rows.column("image_id"),
               reader = optional_column(rows, "rad_id"),
               weight = weight_column(rows.header, file, rows.table);
  const auto columns = take_findings(
      rows, {image, reader, optional_column(rows, "No finding"), weight}, m);
  // A filter may not choose among readers; all images are PA.
  choice.begin_table(m.path, {"image_id", "view"}, {.image = 0, .view = 1});
  m.knows_patients = false;
  Votes votes;
  while (rows.next()) {
    const std::string id(rows.cell(image));
    if (!votes.cast.insert(id + "\n" + std::string(rows.cell(reader))).second)
      rows.table.fail("this reader's row of the image appears twice",
                      "remove one of the rows");
    const auto [place, is_new] = votes.row_of.emplace(id, std::string::npos);
    if (is_new && add_row(m, rows.table, choice, {id, "PA"}, id + ".png", id)) {
      place->second = m.size() - 1;
      m.labels.resize(m.labels.size() + columns.size(), 0.0f);
      votes.readers.push_back(0);
      push_weight(rows, weight, file, m);
      m.ages.push_back(kUnlabeled);
      m.sexes.emplace_back();
      m.views.emplace_back("PA");
    }
    if (place->second == std::string::npos) continue;
    ++votes.readers[place->second];
    for (size_t k = 0; k < columns.size(); ++k) {
      const float said =
          parse_label(rows.fields[columns[k]], rows.table, m.findings[k]);
      if (said != 0 && said != 1)
        rows.table.fail(formatted("{} is neither 0 nor 1", m.findings[k]),
                        "VinDr-CXR's readers say one of the two");
      m.labels[place->second * columns.size() + k] += said;
    }
  }
  if (m.size() > 0) decide_votes(votes, m);
}

}  // namespace chexnet
