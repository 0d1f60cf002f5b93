// Tables of images and labels in their three formats. The first byte says
// which, and what the config asks of it.
#include "chexnet/data/manifest.hpp"

#include <cmath>

#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

DataConfig config_of(uint8_t choices, const std::string& path) {
  static constexpr ManifestFormat kFormats[] = {
      ManifestFormat::kNih, ManifestFormat::kChexpert, ManifestFormat::kCsv};
  DataConfig config;
  config.manifest.path = {path};
  config.manifest.format = {kFormats[choices % 3]};
  if (choices & 4) config.manifest.columns.patient = "patient";
  if (choices & 8) config.manifest.columns.findings = {"Mass", "Edema"};
  if (choices & 16) config.filter = {"view=PA"};
  if (choices & 32) config.manifest.columns.age = "age";
  if (choices & 64) config.uncertain = TrainingPolicy::kOne;
  return config;
}

void run(Bytes bytes) {
  static MemoryFile file;
  Reader fields(bytes);
  const uint8_t choices = fields.byte();
  const auto config = config_of(choices, file.holding(fields.rest()));
  Manifest m;
  if (!accepted<DataError, ConfigError>([&] { m = read_manifest(config); }))
    return;
  const size_t n = m.size();
  require(n > 0 && m.finding_count() > 0, "there is something");
  require(m.patients.size() == n && m.ages.size() == n && m.sexes.size() == n &&
              m.views.size() == n && m.lines.size() == n,
          "each row has all of its columns");
  require(m.labels.size() == n * m.finding_count(), "each row has its labels");
  require(m.scored.empty() || m.scored.size() == m.labels.size(),
          "so it has for scoring");
  require(m.rows.size() == n, "each row has a name of its own");
  for (const float label : m.labels)
    require(label == 0 || label == 1 || std::isnan(label),
            "a label is 0, 1 or none");
  for (size_t row = 0; row < n; ++row) {
    require(m.rows.at(m.images[row]) == row, "a row is found by its name");
    require(!m.place(row).empty(), "a row has a place");
  }
}

std::vector<std::string> seeds() {
  return {
      std::string(1, '\0') +
          "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,"
          "Patient Gender,View Position,OriginalImage[Width,Height],"
          "OriginalImagePixelSpacing[x,y],\n"
          "00000001_000.png,Cardiomegaly|Effusion,0,1,058Y,M,PA,2682,2749,"
          "0.143,0.143,\n"
          "00000002_000.png,No Finding,0,2,81,F,AP,2500,2048,0.171,0.171,\n",
      "\x01Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Mass\n"
      "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,"
      "68,Frontal,AP,1.0,\n"
      "a/patient00002/study1/view1.jpg,Male,87,Lateral,,-1.0,0.0\n",
      "\x2eimage,patient,view,age,Mass,Edema\n1.png,7,PA,40,1,0\n"
      "\"2,x.png\",8,AP,,,-1\n",
      "\x02image,Mass\na.png,1\nb.png,0\n"};
}

const Registered kTarget{{"manifest", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
