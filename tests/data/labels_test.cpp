// Labels: what cells become for training and for scoring, findings by name,
// tables read together.
#include <cmath>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/label_counts.hpp"
#include "chexnet/data/manifest.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

const std::string kChexpertHeader =
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Edema,Pleural Effusion\n";

DataConfig chexpert(const ScratchFolder& folder, const std::string& rows) {
  DataConfig config;
  config.manifest.format = {ManifestFormat::kChexpert};
  config.manifest.path = {folder.write("train.csv", kChexpertHeader + rows)};
  return config;
}

DataConfig plain_table(const std::string& path) {
  DataConfig config;
  config.manifest = {{ManifestFormat::kCsv},
                     {path},
                     {},
                     {"image", "patient", {}, "", "", "", ""}};
  return config;
}

// Equal, NaN for NaN.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return x == y || (std::isnan(x) && std::isnan(y));
  });
}

constexpr float kNone = NAN;

}  // namespace

TEST_CASE(
    "labels that are scored do not depend on training's policy for uncertain "
    "ones") {
  const ScratchFolder folder;
  const std::string row =
      "s/train/patient00001/study1/view1.jpg,F,50,Frontal,AP,,-1.0,1.0\n";
  for (const auto policy :
       {TrainingPolicy::kZero, TrainingPolicy::kOne, TrainingPolicy::kIgnore}) {
    DataConfig config = chexpert(folder, row);
    config.uncertain = {policy};
    const Manifest m = read_manifest(config);
    const std::vector<float> scored(m.scored_row(0), m.scored_row(0) + 3);
    CHECK(same(scored, {0, kNone, 1}));
    const float trained = m.label_row(0)[1];
    if (policy == TrainingPolicy::kIgnore)
      CHECK(std::isnan(trained));
    else
      CHECK(trained == (policy == TrainingPolicy::kOne ? 1 : 0));
  }
}

TEST_CASE(
    "blanks are negative in CheXpert and not labeled elsewhere, unless told") {
  const ScratchFolder folder;
  DataConfig config =
      chexpert(folder, "a/patient1/x.jpg,F,50,Frontal,AP,,,1\n");
  CHECK(same(read_manifest(config).labels, {0, 0, 1}));
  config.blank = LabelPolicy::kIgnore;
  CHECK(same(read_manifest(config).labels, {kNone, kNone, 1}));
  EvalConfig eval;
  eval.blank = LabelPolicy::kZero;
  const Manifest m = read_manifest(config, eval);
  CHECK(same(m.labels, {kNone, kNone, 1}));
  CHECK(same(m.scored, {0, 0, 1}));

  const DataConfig csv =
      plain_table(folder.write("t.csv", "image,patient,A\nx,p,\n"));
  CHECK(std::isnan(read_manifest(csv).labels[0]));
  // No second copy where it would be equal.
  CHECK(read_manifest(csv).scored.empty());
}

TEST_CASE("single findings have a policy of their own for uncertain labels") {
  const ScratchFolder folder;
  DataConfig config =
      chexpert(folder, "a/patient1/x.jpg,F,50,Frontal,AP,,-1,-1\n");
  using enum TrainingPolicy;
  config.uncertain = {kIgnore, {{"Edema", kOne}}};
  CHECK(same(read_manifest(config).labels, {0, 1, kNone}));
  config.uncertain = {kIgnore, {{"edema", kZero}, {"Effusion", kOne}}};
  CHECK(same(read_manifest(config).labels, {0, 0, 1}));
  const auto refused = [&](const std::string& finding) {
    config.uncertain = {kIgnore, {{"Edema", kOne}, {finding, kZero}}};
    return error_of<ConfigError>([&] { read_manifest(config); });
  };
  CHECK(refused("Edemma").find("nearest are 'Edema'") != std::string::npos);
  CHECK(refused("Edema").find("'Edema' appears twice") != std::string::npos);
}

TEST_CASE("a CheXpert patient is a whole folder's name with a number") {
  const ScratchFolder folder;
  const std::string rest = "/study1/x.jpg,F,50,Frontal,AP,,,1\n";
  const auto m =
      read_manifest(chexpert(folder, "data/patients/CheXpert/patient00001" +
                                         rest + "patients/patient7" + rest));
  CHECK(m.patients == std::vector<std::string>{"patient00001", "patient7"});
  const auto refused = error_of<DataError>([&] {
    read_manifest(
        chexpert(folder, "a/patient1" + rest + "patients/patient_data" + rest));
  });
  CHECK(refused.find("train.csv:3: no folder 'patient<number>'") !=
        std::string::npos);
}

TEST_CASE("a table that is not UTF-8 is refused with its line") {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& text) {
    return error_of<DataError>(
        [&] { read_manifest(plain_table(folder.write("t.csv", text))); });
  };
  CHECK(refused("image,patient,\xD6"
                "dem\nx,p,1\n")
            .find("t.csv:1: is not UTF-8") != std::string::npos);
  CHECK(refused("image,patient,A\nx,p,1\ny,M\xFCller,0\n")
            .find("t.csv:3: is not UTF-8") != std::string::npos);
  CHECK(refused("image,patient,\xC3\x96"
                "dem\nx,p,1\n")
            .empty());
  CHECK(line_not_utf8("\xEF\xBB\xBF\xF0\x9F\xA9\xBB") == 0);
  for (const char* bad :
       {"\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\x80"})
    CHECK(line_not_utf8(bad) == 1);
}

TEST_CASE("a finding that is named twice is refused") {
  const ScratchFolder folder;
  DataConfig config =
      plain_table(folder.write("t.csv", "image,patient,A,B\nx,p,1,0\n"));
  config.findings = {"A", "A"};
  CHECK(error_of<ConfigError>([&] {
          read_manifest(config);
        }).find("data.findings: 'A' appears twice") != std::string::npos);
  config = plain_table(folder.write("t.csv", "image,patient,A,A\nx,p,1,0\n"));
  CHECK(error_of<DataError>([&] {
          read_manifest(config);
        }).find("t.csv:1: finding 'A' appears twice") != std::string::npos);
  config = plain_table(folder.write(
      "t.csv", "image,patient,Effusion,Pleural Effusion\nx,p,1,0\n"));
  CHECK(error_of<DataError>([&] {
          read_manifest(config);
        }).find("'Pleural Effusion' appears twice, also as 'Effusion'") !=
        std::string::npos);
  config = plain_table(
      folder.write("t.csv", "image,patient,A,Pleural Effusion\nx,p,0,1\n"));
  config.findings = {"effusion"};
  CHECK(read_manifest(config).findings == config.findings);
  CHECK(same(read_manifest(config).labels, {1}));
}

TEST_CASE("without a patient column nothing is known of patients") {
  const ScratchFolder folder;
  DataConfig config = plain_table(folder.write("t.csv", "image,A\nx,1\n"));
  config.manifest.columns.patient.clear();
  CHECK_FALSE(read_manifest(config).knows_patients);
  config = plain_table(folder.write("t.csv", "image,patient,A\nx,p,1\n"));
  CHECK(read_manifest(config).knows_patients);
}

TEST_CASE("findings of two data sets meet by name, never by place") {
  CHECK(same_finding("Effusion", "Pleural Effusion"));
  CHECK(same_finding("Pleural_Thickening", "pleural thickening"));
  CHECK_FALSE(same_finding("Lung Lesion", "Mass"));
  CHECK_FALSE(same_finding("Pleural Other", "Pleural_Thickening"));
  CHECK(find_finding({"Pleural Effusion", "Effusion"}, "Effusion") == 1u);
  CHECK_FALSE(find_finding({"A"}, "B"));

  const ScratchFolder folder;
  Manifest m = read_manifest(
      chexpert(folder, "a/patient1/x.jpg,F,50,Frontal,AP,,-1,1\n"));
  const auto unknown = match_findings(m, {"Effusion", "Hernia", "Edema"});
  CHECK(unknown == std::vector<std::string>{"No Finding"});
  CHECK(m.findings == std::vector<std::string>{"Effusion", "Hernia", "Edema"});
  CHECK(same(m.labels, {1, kNone, kNone}));
}

TEST_CASE("findings that only one class has are named") {
  const ScratchFolder folder;
  const Manifest m = read_manifest(plain_table(
      folder.write("t.csv", "image,patient,A,B,C\nx,p,1,0,1\ny,p,,0,0\n")));
  const auto counts = count_labels(m, {0, 1}, Labels::kTraining);
  CHECK(counts.positives == std::vector<size_t>{1, 0, 1});
  CHECK(one_sided_text(m, counts, m.findings) ==
        "no positive of B; no negative of A");
  CHECK(one_sided_text(m, counts, {"C"}).empty());
}

TEST_CASE("tables of more columns than findings there are, are refused") {
  const ScratchFolder folder;
  std::string header = "image,patient", row = "a.png,1";
  for (int i = 0; i < 10'000; ++i) {
    header += ",f" + std::to_string(i);
    row += ",1";
  }
  const auto table =
      plain_table(folder.write("t.csv", header + "\n" + row + "\n"));
  CHECK(error_of<DataError>([&] {
          read_manifest(table);
        }).find("t.csv:1: the header has 10002 columns, more than 10000") !=
        std::string::npos);
}

TEST_CASE("a header that other programs spoiled is refused by what is wrong") {
  const ScratchFolder folder;
  for (const auto& [text, part] :
       {std::pair{"image,patient,A\ra.png,1,0\rb.png,2,1\r",
                  "lines end by carriage returns alone"},
        std::pair{"image,patient,\xEF\xBB\xBF"
                  "A\na.png,1,0\n",
                  "a byte order mark is in the name of a column"}}) {
    const auto table = plain_table(folder.write("t.csv", text));
    CHECK(error_of<DataError>([&] { read_manifest(table); }).find(part) !=
          std::string::npos);
  }
  CHECK(read_manifest(
            plain_table(folder.write(
                "t.csv", "\xEF\xBB\xBFimage,patient,A\r\na.png,1,0\r\n")))
            .size() == 1);
}

TEST_CASE("a finding that appears twice is found among a hundred thousand") {
  std::vector<std::string> names;
  for (int i = 0; i < 100'000; ++i) names.push_back("f" + std::to_string(i));
  CHECK(doubled_finding(names).empty());
  names.emplace_back("Effusion");
  names.emplace_back("pleural_effusion");
  CHECK(doubled_finding(names) ==
        "'pleural_effusion' appears twice, also as 'Effusion'");
}
