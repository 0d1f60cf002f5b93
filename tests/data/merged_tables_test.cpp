// Data from several sources: tables read together, rows that take part, names
// of findings, and cuts by patient.
#include <cmath>
#include <map>
#include <set>

#include "chexnet/core/error.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/split.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

constexpr float kNotLabeled = NAN;

bool equal_labels(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return x == y || (std::isnan(x) && std::isnan(y));
  });
}

DataConfig csv(const Strings& paths) {
  DataConfig config;
  config.manifest = {{ManifestFormat::kCsv},
                     paths,
                     {},
                     {"image", "patient", {}, "age", "sex", "view", ""}};
  return config;
}

const std::string kStart = "image,patient,age,sex,view,";

bool holds(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

template <class Failure>
std::string refused(const DataConfig& config) {
  return error_of<Failure>([&] { read_manifest(config); });
}

}  // namespace

TEST_CASE("tables are one by names of findings, and what one lacks is open") {
  const ScratchFolder folder;
  const auto a = folder.write("a.csv", kStart + "A,Effusion\nx,p,,,,1,0\n");
  const auto b = folder.write(
      "b.csv", kStart + "Pleural Effusion,B\ny,q,,,,,1\nz,q,,,,-1,0\n");
  DataConfig config = csv({a, b});
  EvalConfig eval;
  eval.blank = LabelPolicy::kZero;
  const Manifest m = read_manifest(config, eval);
  CHECK(m.findings == Strings{"A", "Effusion", "B"});
  CHECK(m.images == Strings{"x", "y", "z"});
  CHECK(m.rows.at("z") == 2);
  CHECK((m.place(0) == a + ":2" && m.place(2) == b + ":3"));
  CHECK(equal_labels(m.labels, {1, 0, kNotLabeled, kNotLabeled, kNotLabeled, 1,
                                kNotLabeled, kNotLabeled, 0}));
  // A blank cell follows its policy, a column that is not there does not.
  CHECK(equal_labels(m.scored, {1, 0, kNotLabeled, kNotLabeled, 0, 1,
                                kNotLabeled, kNotLabeled, 0}));
  config.findings = {"B"};
  CHECK(equal_labels(read_manifest(config).labels, {kNotLabeled, 1, 0}));
  config.findings = {"C"};
  CHECK(holds(refused<ConfigError>(config), "no finding 'C'"));
  config = csv({a, folder.write("c.csv", kStart + "A\nx,p,,,,1\n")});
  CHECK(holds(refused<DataError>(config),
              "c.csv:2: the image of this row is also in "));
}

TEST_CASE("rows have the weights of a column, 1 where a table lacks it") {
  const ScratchFolder folder;
  const auto a =
      folder.write("a.csv", kStart + "A,trust\nx,p,,,,1,0.5\ny,q,,,,0, 2 \n");
  const auto b = folder.write("b.csv", kStart + "A\nz,r,,,,1\n");
  DataConfig config = csv({b, a});
  config.sample_weight = "trust";
  const Manifest m = read_manifest(config);
  CHECK(m.findings == Strings{"A"});
  CHECK(m.sample_weights == std::vector<float>{1, 0.5f, 2});
  config.manifest.path = {b};
  CHECK(read_manifest(config).sample_weights.empty());
  for (const std::string bad : {"", "-1", "nan", "inf", "1e99", "0.5x"}) {
    config.manifest.path = {
        folder.write("bad.csv", kStart + "A,trust\nx,p,,,,1," + bad + "\n")};
    CHECK(holds(refused<DataError>(config),
                "bad.csv:2: weight '" + bad + "' in column trust"));
  }
  const auto nih = folder.write(
      "nih.csv",
      "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View "
      "Position,trust\ni.png,Mass,1,50,M,PA,0.25\n");
  config.manifest.format = {ManifestFormat::kNih};
  config.manifest.path = {nih};
  CHECK(read_manifest(config).sample_weights == std::vector<float>{0.25f});
}

TEST_CASE("each table has the policy of its own format for blanks") {
  const ScratchFolder folder;
  const auto plain = folder.write("a.csv", kStart + "Edema\nx,p,,,,\n");
  const auto chexpert =
      folder.write("t.csv",
                   "Path,Sex,Age,Frontal/Lateral,AP/PA,Edema\n"
                   "s/train/patient1/study1/view1.jpg,F,50,Frontal,AP,\n");
  DataConfig config = csv({plain, chexpert});
  config.manifest.format = {ManifestFormat::kCsv, ManifestFormat::kChexpert};
  CHECK(equal_labels(read_manifest(config).labels, {kNotLabeled, 0}));
  config.manifest.format.push_back(ManifestFormat::kNih);
  CHECK(holds(refused<ConfigError>(config),
              "data.manifest.format: 3 values for 2 tables"));
  config.manifest.format = {ManifestFormat::kCsv};
  config.manifest.split = {SplitName::kTrain};
  CHECK(holds(refused<ConfigError>(config),
              "data.manifest.split: 1 values for 2 tables"));
}

TEST_CASE("columns that a config names are in one of its tables") {
  const ScratchFolder folder;
  DataConfig config = csv({folder.write("a.csv", kStart + "A,x\ni,p,,,,1,7\n"),
                           folder.write("b.csv", kStart + "B\nj,q,,,,0\n")});
  config.manifest.columns.findings = {"A", "B"};
  CHECK(equal_labels(read_manifest(config).labels,
                     {1, kNotLabeled, kNotLabeled, 0}));
  config.manifest.columns.findings = {"A", "B", "C"};
  CHECK(holds(refused<DataError>(config), "no table has the column 'C'"));
}

TEST_CASE("a mapping file says what findings are called here") {
  const ScratchFolder folder;
  DataConfig config = csv({folder.write(
      "t.csv", kStart +
                   "Mass,Nodule,Infiltration\n"
                   "a,p,,,,1,0,1\nb,p,,,,0,0,\nc,p,,,,0,,0\nd,p,,,,-1,,0\n")});
  config.finding_names = folder.write(
      "names.csv", "name,finding\nMass,Lung Lesion\nNodule,lung lesion\n");
  config.uncertain = {TrainingPolicy::kSmooth};
  const Manifest m = read_manifest(config);
  CHECK(m.findings == Strings{"Lung Lesion", "Infiltration"});
  // 1 where either is, uncertain before blank, 0 only where both are.
  CHECK(
      equal_labels(m.labels, {1, 1, 0, kNotLabeled, kNotLabeled, 0, 0.7f, 0}));
  CHECK_FALSE(m.finding_names_sha256.empty());
  const auto before = m.finding_names_sha256;
  folder.write("names.csv", "name,finding\nMass,Lung Lesion\n");
  CHECK(read_manifest(config).finding_names_sha256 != before);

  const auto bad = [&](const std::string& text) {
    folder.write("names.csv", text);
    return refused<DataError>(config);
  };
  CHECK(holds(bad("a,b\n"), "names.csv:1: no header 'name,finding'"));
  CHECK(holds(bad("name,finding\nMass\n"), "names.csv:2: not two fields"));
  CHECK(holds(bad("name,finding\nMass,\n"), "names.csv:2: an empty name"));
  CHECK(holds(bad("name,finding\nMass,A\nMass,B\n"),
              "names.csv:3: 'Mass' appears twice"));
}

TEST_CASE("filters keep the rows that meet all conditions") {
  const ScratchFolder folder;
  const auto table =
      folder.write("t.csv", kStart +
                                "A,Support Devices\n"
                                "a,p,58,M,PA,1,1.0\nb,p,006M,F,AP,0,0\n"
                                "c,q,18,F,PA,0,\nd,r,,F,,0,0.0\n");
  const auto kept = [&](const Strings& filter) {
    DataConfig config = csv({table});
    config.filter = filter;
    std::string names;
    for (const auto& image : read_manifest(config).images) names += image;
    return names;
  };
  CHECK(kept({"view=PA"}) == "ac");
  CHECK(kept({"view = PA|AP"}) == "abc");
  CHECK(kept({"view!=PA"}) == "bd");
  CHECK(kept({"view="}) == "d");
  CHECK(kept({"view!="}) == "abc");
  CHECK(kept({"age>=18"}) == "ac");
  CHECK(kept({"age<18"}) == "b");
  CHECK(kept({"age>18"}) == "a");
  CHECK(kept({"age<=18", "sex=F", "view=PA"}) == "c");
  CHECK(kept({"patient!=p"}) == "cd");
  CHECK(kept({"image=b|d"}) == "bd");
  CHECK(kept({"Support Devices=0"}) == "bd");
  // An age is one number of years, however it is written.
  CHECK(kept({"age=0.5"}) == "b");
  CHECK(kept({"age=6M"}) == "b");
  CHECK(kept({"age!=0.5"}) == "acd");
  CHECK(kept({"age=058Y|18"}) == "ac");
  CHECK(kept({"age<=006M"}) == "b");
  CHECK(kept({"age>6M"}) == "ac");
  DataConfig config = csv({table});
  config.filter = {"viev=PA"};
  CHECK(holds(refused<ConfigError>(config),
              "names a column that no table has ('viev'). Hint: nearest are "
              "'view'"));
  for (const char* wrong : {"view", "=PA", "age>old", "age<1|2", "age>=nan",
                            "view!PA", "Support Devices<6M"}) {
    config.filter = {wrong};
    CHECK(holds(refused<ConfigError>(config), "data.filter: '"));
  }
  config.filter = {"view=LL"};
  CHECK(holds(refused<DataError>(config), "no row is left"));
}

TEST_CASE("a filter on a column touches the tables that have it") {
  const ScratchFolder folder;
  DataConfig config =
      csv({folder.write("a.csv", kStart + "A,scanner\nx,p,,,AP,1,7\n"),
           folder.write("b.csv", kStart + "A\ny,q,,,PA,0\n")});
  config.manifest.columns.findings = {"A"};
  config.filter = {"scanner=8"};
  CHECK(read_manifest(config).images == Strings{"y"});
  config.filter = {"view=AP"};
  CHECK(read_manifest(config).images == Strings{"x"});
}

TEST_CASE("what is excluded is in no split, by image or patient") {
  const ScratchFolder folder;
  DataConfig config = csv({folder.write(
      "t.csv", kStart + "A\na,p,,,,1\nb,p,,,,0\nc,q,,,,0\nd,r,,,,1\n")});
  config.exclude = folder.write("withdrawn.txt", "p\r\nd\nnobody\n");
  config.val_fraction = 0;
  config.train_list = folder.write("train.txt", "a\nc\nd\n");
  const Manifest m = read_manifest(config);
  CHECK(m.images == Strings{"c"});
  CHECK(m.left_out.size() == 3);
  CHECK(make_splits(m, config).train.rows == std::vector<uint32_t>{0});
  config.train_list = folder.write("train.txt", "a\nb\n");
  CHECK(holds(error_of<DataError>([&] { make_splits(m, config); }),
              "leave out all of its 2 names"));
  config.train_list = folder.write("train.txt", "a\nelse\n");
  CHECK(holds(error_of<DataError>([&] { make_splits(m, config); }),
              "name 2 of it is not in"));
}

TEST_CASE("tables may be splits, and share no patient") {
  const ScratchFolder folder;
  const auto a =
      folder.write("train.csv", kStart + "A\na,p,,,,1\nb,q,,,,0\nc,s,,,,0\n");
  const auto b = folder.write("valid.csv", kStart + "A\nd,r,,,,1\n");
  DataConfig config = csv({a, b});
  config.manifest.split = {SplitName::kTrain, SplitName::kVal};
  Manifest m = read_manifest(config);
  Splits splits = make_splits(m, config);
  CHECK(splits.train.rows == std::vector<uint32_t>{0, 1, 2});
  CHECK(splits.val.rows == std::vector<uint32_t>{3});
  CHECK(splits.test.rows.empty());
  config.fold = {1, 2};
  CHECK(holds(error_of<ConfigError>([&] { make_splits(m, config); }),
              "data.fold: set beside a list or table of validation images"));
  config.fold = {};
  config.manifest.split = {SplitName::kTrain, SplitName::kTest};
  folder.write("valid.csv", kStart + "A\nd,q,,,,1\n");
  m = read_manifest(config);
  CHECK(holds(error_of<DataError>([&] { make_splits(m, config); }),
              "1 patient in two splits, e.g. that of " + a +
                  ":3 in train and " + b + ":2 in test"));
}

namespace {

// 400 patients of two images; finding A on every tenth, B on every third.
Manifest mixed() {
  Manifest m;
  m.findings = {"A", "B"};
  for (int i = 0; i < 800; ++i) {
    const int patient = i / 2;
    m.images.push_back("i" + std::to_string(i));
    m.patients.push_back("p" + std::to_string(patient));
    m.labels.push_back(patient % 10 == 0 ? 1.0f : 0.0f);
    m.labels.push_back(patient % 3 == 0 ? 1.0f : 0.0f);
    m.rows[m.images.back()] = static_cast<uint32_t>(i);
  }
  return m;
}

int positives(const Manifest& m, const Split& split, size_t finding) {
  int count = 0;
  for (const auto row : split.rows)
    count += m.label_row(row)[finding] == 1 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("folds are disjoint by patient, together all, and beside the test") {
  const Manifest m = mixed();
  DataConfig config;
  config.test_fraction = 0.2;
  std::map<uint32_t, int> times;
  std::string test;
  for (int fold = 1; fold <= 5; ++fold) {
    config.fold = {fold, 5};
    const Splits splits = make_splits(m, config);  // refuses leaks
    CHECK(splits.test.rows.size() == 160);
    CHECK(splits.val.rows.size() == 128);
    CHECK(splits.train.rows.size() == 512);
    if (fold > 1) CHECK(splits.test.sha256 == test);
    test = splits.test.sha256;
    for (const auto row : splits.val.rows) ++times[row];
    for (const auto row : splits.test.rows) times[row] += 1;
  }
  CHECK(times.size() == 800);
  config.fold = {1, 401};
  config.test_fraction = 0;
  CHECK(holds(error_of<DataError>([&] { make_splits(m, config); }),
              "400 patients for data.fold=1/401"));
}

TEST_CASE("stratified cuts give each finding its share") {
  const Manifest m = mixed();
  DataConfig config;
  config.stratify = true;
  config.val_fraction = 0.25;
  config.test_fraction = 0.1;
  for (const int64_t seed : {1, 2, 3}) {
    config.split_seed = seed;
    const Splits splits = make_splits(m, config);
    CHECK(splits.test.rows.size() == 80);
    CHECK(splits.val.rows.size() == 180);
    // 40 patients have A, 134 have B: of A, the rarer, each part has its
    // proportion to within one patient; of B, which some of A's patients have
    // too, nearly so.
    CHECK(std::abs(positives(m, splits.test, 0) - 8) <= 2);
    CHECK(std::abs(positives(m, splits.val, 0) - 18) <= 2);
    CHECK(std::abs(positives(m, splits.val, 1) - 60) <= 8);
  }
  config.test_fraction = 0;
  for (config.fold = {1, 4}; config.fold.number <= 4; ++config.fold.number) {
    const Splits splits = make_splits(m, config);
    CHECK(splits.val.rows.size() == 200);
    CHECK(std::abs(positives(m, splits.val, 0) - 20) <= 2);
  }
}
