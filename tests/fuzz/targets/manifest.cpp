// Tables of images and labels in their three formats. The first two bytes say
// which, and what the config asks of it.
#include "chexnet/data/manifest.hpp"

#include <cmath>

#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

DataConfig config_of(uint8_t choices, const std::string& path) {
  static constexpr ManifestFormat kFormats[] = {
      ManifestFormat::kNih, ManifestFormat::kChexpert, ManifestFormat::kCsv,
      ManifestFormat::kCsv};
  DataConfig config;
  config.manifest.path = {path};
  config.manifest.format = {kFormats[choices & 3]};
  if (choices & 4) config.manifest.columns.patient = "patient";
  if (choices & 8) config.manifest.columns.findings = {"Mass", "Edema"};
  if (choices & 16) config.filter = {"view=PA"};
  if (choices & 32) config.manifest.columns.age = "age";
  if (choices & 64) config.uncertain = {TrainingPolicy::kOne};
  if (choices & 128) config.blank = LabelPolicy::kOne;
  return config;
}

// What only some configs ask.
void ask_more(uint8_t choices, DataConfig& config) {
  if (choices & 1) config.manifest.path.push_back(config.manifest.path[0]);
  if (choices & 2) config.manifest.format.push_back(ManifestFormat::kCsv);
  if (choices & 4) config.findings = {"Mass", "mass"};
  if (choices & 8) config.findings = {"Edema", "Mas"};
  using enum TrainingPolicy;
  if (choices & 16)
    config.uncertain = {kIgnore, {{"Mass", kOne}, {"Edema", kSmooth}}};
  if (choices & 32) config.uncertain = {kIgnore, {{"Mas", kOne}}};
  if (choices & 64) config.sample_weight = "weight";
  if (choices & 128) config.manifest.split = {SplitName::kTrain};
}

void run(Bytes bytes) {
  static MemoryFile file;
  Reader fields(bytes);
  const uint8_t choices = fields.byte();
  const uint8_t more = fields.byte();
  auto config = config_of(choices, file.holding(fields.rest()));
  ask_more(more, config);
  EvalConfig eval;
  if (more & 1) eval.uncertain = LabelPolicy::kOne;
  Manifest m;
  if (!accepted<DataError, ConfigError>(
          [&] { m = read_manifest(config, eval); }))
    return;
  const size_t n = m.size();
  require(n > 0 && m.finding_count() > 0, "there is something");
  require(m.patients.size() == n && m.ages.size() == n && m.sexes.size() == n &&
              m.views.size() == n && m.studies.size() == n &&
              m.lines.size() == n,
          "each row has all of its columns");
  require(m.labels.size() == n * m.finding_count(), "each row has its labels");
  require(m.scored.empty() || m.scored.size() == m.labels.size(),
          "so it has for scoring");
  require(m.uncertain.empty() || m.uncertain.size() == m.labels.size(),
          "uncertain entries are marked for each row");
  require(m.rows.size() == n, "each row has a name of its own");
  for (const float label : m.labels)
    require((label >= 0 && label <= 1) || std::isnan(label),
            "a label is 0 to 1 or none");
  for (size_t row = 0; row < n; ++row) {
    require(m.rows.at(m.images[row]) == row, "a row is found by its name");
    require(!m.place(row).empty(), "a row has a place");
  }
  match_findings(m, {"Edema", "Nodule"});
  require(m.labels.size() == 2 * n,
          "a network sees the findings that it knows");
}

std::vector<std::string> seeds() {
  return {
      std::string(2, '\0') +
          "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,"
          "Patient Gender,View Position,OriginalImage[Width,Height],"
          "OriginalImagePixelSpacing[x,y],\n"
          "00000001_000.png,Cardiomegaly|Effusion,0,1,058Y,M,PA,2682,2749,"
          "0.143,0.143,\n"
          "00000002_000.png,No Finding,0,2,81,F,AP,2500,2048,0.171,0.171,\n",
      "\x01" + std::string(1, '\0') +
          "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Mass\n"
          "CheXpert-v1.0-small/train/patient00001/study1/"
          "view1_frontal.jpg,Female,"
          "68,Frontal,AP,1.0,\n"
          "a/patient00002/study1/view1.jpg,Male,87,Lateral,,-1.0,0.0\n",
      "\x2e" + std::string(1, '\0') +
          "image,patient,view,age,Mass,Edema\n1.png,7,PA,40,1,0\n"
          "\"2,x.png\",8,AP,,,-1\n",
      "\x02" + std::string(1, '\0') + "image,Mass\na.png,1\nb.png,0\n",
      "\x02\x01image,Mass\na.png,1\n",
      "\x02\x02image,Mass\na.png,1\n",
      "\x02\x03image,Mass\na.png,1\n",
      "\x0a\x04image,Mass,Edema\na.png,1,-1\n",
      "\x0a\x08image,Mass,Edema\na.png,1,-1\n",
      "\x0a\x10image,Mass,Edema\na.png,1,-1\nb.png,,0\n",
      "\x0a\x20image,Mass,Edema\na.png,1,-1\n",
      "\x02\x40image,Mass,weight\na.png,1,0.5\nb.png,0,2\n",
      "\x02\x40image,Mass\na.png,1\n",
      "\x02\x81image,Mass\na.png,1\n",
      "\x8a" + std::string(1, '\0') + "image,Mass,Edema\na.png,,-1\n",
      "\x12" + std::string(1, '\0') + "image,view,Mass\na.png,PA,-1\n",
      "\x02\x42image,Mass,weight\na.png,1,much\n",
      "\x06" + std::string(1, '\0') + "image,patient,Mass\na.png,,1\n",
      "\x02" + std::string(1, '\0') + "image,Mass\n"};
}

const Registered kTarget{{"manifest", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
