// PadChest: a list of words per image.
// docs/labels.md says where each fact is from and what nobody has checked.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "labels.hpp"
#include "table_rows.hpp"

namespace chexnet {
namespace {

// The words that count as findings of ChestX-ray14. Words are equal or not:
// parts of words would make a nodule of a pseudonodule.
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
  std::vector<std::string> words;
  std::string_view rest = trimmed(list);
  if (rest.empty()) return words;
  if (rest.size() < 2 || !rest.starts_with('[') || !rest.ends_with(']'))
    refuse();
  rest = trimmed(rest.substr(1, rest.size() - 2));
  while (!rest.empty()) {
    const char quote = rest.front();
    const auto end = rest.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos)
      refuse();
    words.push_back(lowered(std::string(trimmed(rest.substr(1, end - 1)))));
    rest = trimmed(rest.substr(end + 1));
    if (rest.empty()) break;
    if (rest.front() != ',') refuse();
    rest = trimmed(rest.substr(1));
  }
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// [K] by the words. Findings that they do not name are absent, unless the
// report tells nothing: no words, "as before", or too bad a picture.
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
               study = optional_column(rows.header, "StudyID", rows.table),
               birth = rows.column("PatientBirth"),
               sex = rows.column("PatientSex_DICOM"),
               view = rows.column("Projection"), labels = rows.column("Labels"),
               weight =
                   optional_column(rows.header, file.sample_weight, rows.table);
  m.findings = nih_findings();
  auto header = rows.header;
  header.emplace_back("age");  // which the table has not
  choice.begin_table(
      m.path, header,
      {.image = image, .age = rows.header.size(), .sex = sex, .view = view});
  const std::unordered_set<std::string_view> unreadable(std::begin(kUnreadable),
                                                        std::end(kUnreadable));
  int64_t damaged = 0, excluded = 0;
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
    rows.fields.emplace_back(age_text);
    if (!add_row(m, rows.table, choice, rows.fields, path,
                 rows.fields[patient]))
      continue;
    push_labels(words, m);
    push_weight(rows.fields, weight, rows.table, file, m);
    push_known({age, rows.cell(sex), rows.cell(view), rows.cell(study)}, m);
  }
  log_left_out(m, damaged, "their files are known to be cut off");
  log_left_out(m, excluded, "the table says 'exclude'");
}

}  // namespace chexnet
