#include "chexnet/data/manifest.hpp"

#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/image_index.hpp"
#include "chexnet/data/split.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

const std::string kNihHeader =
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient "
    "Gender,View "
    "Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]";

DataConfig nih(const std::string& path) {
  DataConfig config;
  config.manifest.path = {path};
  return config;
}

}  // namespace

TEST_CASE("both forms of NIH's header read alike") {
  const ScratchFolder folder;
  const std::string rows =
      "00000001_000.png,Cardiomegaly|Hernia,0,1,58,M,PA,2682,2749,0.143,0.143";
  const std::string more =
      "00000002_000.png,No Finding,0,2,006M,F,AP,2682,2749,0.143,0.143";
  const auto plain = read_manifest(nih(
      folder.write("a.csv", kNihHeader + "\n" + rows + "\n" + more + "\n")));
  const auto commas = read_manifest(nih(folder.write(
      "b.csv", kNihHeader + ",\r\n" + rows + ",\r\n" + more + ",\r\n")));
  for (const auto* m : {&plain, &commas}) {
    REQUIRE(m->size() == 2);
    CHECK(m->label_row(0)[1] == 1);
    CHECK(m->label_row(0)[13] == 1);
    CHECK(std::accumulate(m->labels.begin(), m->labels.end(), 0.0f) == 2);
    CHECK(m->ages[0] == 58);
    CHECK(m->ages[1] == Approx(0.5));
    CHECK(m->views[1] == "AP");
  }
  CHECK(plain.sha256 != commas.sha256);
}

TEST_CASE("a damaged NIH table is refused with file, line and what to do") {
  const ScratchFolder folder;
  struct Case {
    std::string row;
    const char* part;
  };
  const std::vector<Case> cases = {
      {"x.png,Cardiomegali,0,1,58,M,PA,1,1,0.1,0.1",
       ":2: unknown finding 'Cardiomegali'. Hint: nearest are 'Cardiomegaly'"},
      {"x.png,Hernia,0,,58,M,PA,1,1,0.1,0.1", ":2: patient id is empty"},
      {",Hernia,0,1,58,M,PA,1,1,0.1,0.1", ":2: image name is empty"},
      {"x.png,,0,1,58,M,PA,1,1,0.1,0.1", ":2: finding labels are empty"},
      {"x.png,Hernia,0", ":2: row has 3 fields"},
      {"x.png,Hernia,0,1,58,M,PA,1,1,0.1,0.1\nx.png,Hernia,0,1,58,M,PA,1,1,0.1,"
       "0.1",
       ":3: the image of this row appears twice, first on line 2"}};
  for (const auto& c : cases) {
    const auto text = error_of<DataError>([&] {
      read_manifest(
          nih(folder.write("t.csv", kNihHeader + "\n" + c.row + "\n")));
    });
    INFO(text);
    CHECK(text.find("t.csv") != std::string::npos);
    CHECK(text.find(c.part) != std::string::npos);
  }
  CHECK(error_of<DataError>([&] {
          read_manifest(nih(folder.write("e.csv", "")));
        }).find("e.csv:1: the file is empty") != std::string::npos);
  CHECK(error_of<DataError>(
            [&] { read_manifest(nih(folder.write("e.csv", "a,b\n"))); })
            .find("no column 'Image Index'. Hint: the header has 'a', 'b'. A "
                  "table of another layout: --set data.manifest.format=csv") !=
        std::string::npos);
  DataConfig other = nih(folder.write("f.csv", "a,b\n"));
  other.manifest.format = {ManifestFormat::kCsv};
  CHECK(error_of<DataError>([&] { read_manifest(other); })
            .find("no column 'image'. Hint: the header has 'a', 'b'. Another "
                  "name: --set data.manifest.columns.image=NAME") !=
        std::string::npos);
  CHECK(error_of<AbsentError>([&] {
          read_manifest(nih("/no/such.csv"));
        }).find("/no/such.csv") != std::string::npos);
}

TEST_CASE("any table gives findings by name, blank and uncertain as told") {
  const ScratchFolder folder;
  DataConfig config;
  config.manifest = {
      {ManifestFormat::kCsv},
      {folder.write("t.csv",
                    "file,who,B,A,note\na.png,p1,1,-1,0\nb.png,p2,,0,1\n")},
      {},
      {"file", "who", {"A", "B"}, "", "", "", ""}};
  auto m = read_manifest(config);
  CHECK(m.findings == Strings{"A", "B"});
  CHECK(std::isnan(m.labels[0]));
  CHECK(m.labels[1] == 1);
  CHECK(std::isnan(m.labels[3]));
  config.uncertain = {TrainingPolicy::kOne};
  config.blank = LabelPolicy::kZero;
  m = read_manifest(config);
  CHECK(m.labels == std::vector<float>{1, 1, 0, 0});
  config.findings = {"B"};
  CHECK(read_manifest(config).labels == std::vector<float>{1, 0});
  config.findings = {"C"};
  CHECK(error_of<ConfigError>([&] { read_manifest(config); })
            .find("[config] data.findings: " + config.manifest.path[0] +
                  " has no finding 'C'. Hint: nearest are ") !=
        std::string::npos);
  config.findings.clear();
  const auto comma = config.manifest.path;
  config.manifest.path = {folder.write(
      "semicolon.csv", "file;who;B;A;note\na.png;p1;1;-1;0\nb.png;p2;;0;1\n")};
  CHECK(read_manifest(config).labels == std::vector<float>{1, 1, 0, 0});
  config.manifest.path = comma;
  config.manifest.columns.image = "files";
  CHECK(error_of<DataError>([&] {
          read_manifest(config);
        }).find("no column 'files'. Hint: the header has 'file'") !=
        std::string::npos);
  // In other letters it is the same, where only one is.
  config.manifest.columns.image = "FILE";
  CHECK(read_manifest(config).size() == 2);
  for (const char* doubled :
       {"file,who,A,B,A\na.png,p1,1,0,0\n", "file,file,who,A,B\na,b,p1,1,0\n",
        "file,who,who,A,B\na.png,p1,p2,1,0\n"}) {
    config.manifest.path = {folder.write("doubled.csv", doubled)};
    config.manifest.columns.image = "file";
    CHECK(error_of<DataError>([&] {
            read_manifest(config);
          }).find("is in the header twice") != std::string::npos);
  }
  config.manifest.path = {
      folder.write("u.csv", "file,who,A,B\na.png,p1,2,0\n")};
  config.manifest.columns.image = "file";
  CHECK(error_of<DataError>([&] {
          read_manifest(config);
        }).find(":2: label '2' of A") != std::string::npos);
}

namespace {

// Three images a patient: i0, i1, i2 of p0, and so on.
Manifest images_by_threes(int images) {
  Manifest m;
  m.findings = {"A"};
  for (int i = 0; i < images; ++i) {
    m.images.push_back("i" + std::to_string(i));
    m.patients.push_back("p" + std::to_string(i / 3));
    m.labels.push_back(0);
    m.rows[m.images.back()] = static_cast<uint32_t>(i);
  }
  return m;
}

}  // namespace

TEST_CASE("a finding whose name no model file can hold is refused at once") {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& header) {
    DataConfig config;
    config.manifest = {{ManifestFormat::kCsv},
                       {folder.write("t.csv", header + "\na.png,1,0\n")},
                       {},
                       {"image", "", {}, "", "", "", ""}};
    return error_of<DataError>([&] { read_manifest(config); });
  };
  CHECK(refused("image,Mass,\"two\nlines\"")
            .find("'two\\x0alines' has control") != std::string::npos);
  CHECK(refused("image,Mass,").find("'' has no name") != std::string::npos);
}

TEST_CASE("what lists name for validation or test is not trained on") {
  const Manifest m = images_by_threes(12);
  const ScratchFolder folder;
  DataConfig config;
  config.val_list = folder.write("val.txt", "i3\ni4\ni5\n");
  config.test_list = folder.write("test.txt", "i2\ni1\ni0\n");
  const Splits splits = make_splits(m, config);
  CHECK(splits.test.rows == std::vector<uint32_t>{2, 1, 0});
  CHECK(splits.val.rows == std::vector<uint32_t>{3, 4, 5});
  CHECK(splits.train.rows == std::vector<uint32_t>{6, 7, 8, 9, 10, 11});
}

TEST_CASE("patients stay on one side of every cut") {
  const Manifest m = images_by_threes(3000);
  DataConfig config;
  const Splits a = make_splits(m, config), b = make_splits(m, config);
  CHECK(a.val.rows.size() == 300);
  CHECK(a.train.rows.size() == 2700);
  CHECK(a.val.rows == b.val.rows);
  config.split_seed = 2;
  CHECK(make_splits(m, config).val.rows != a.val.rows);
  std::set<std::string> val;
  for (const auto row : a.val.rows) val.insert(m.patients[row]);
  for (const auto row : a.train.rows)
    CHECK_FALSE(val.contains(m.patients[row]));

  const ScratchFolder folder;
  config.train_list = folder.write("train.txt", "i0\ni1");
  config.test_list = folder.write("test.txt", "i2\r\ni9\n");
  const auto leak = error_of<DataError>([&] { make_splits(m, config); });
  CHECK(leak.find("1 patient in two splits, e.g. that of row ") !=
        std::string::npos);
  config.val_fraction = 0;
  config.allow_patient_leak = true;
  CHECK(make_splits(m, config).leaked_patients == 1);
  config.test_list = folder.write("test.txt", "i1\n");
  CHECK(error_of<DataError>([&] {
          make_splits(m, config);
        }).find("row 2 of ") != std::string::npos);
  config.test_list = folder.write("test.txt", "nobody\n");
  CHECK(error_of<DataError>([&] {
          make_splits(m, config);
        }).find("name 1 of it is not in") != std::string::npos);
}

namespace {
std::string path_of(const ImageIndex& index, uint32_t row) {
  return index.containers()[index.location(row).container].path;
}
}  // namespace

TEST_CASE("images are found in sub-folders, once, by their whole name") {
  const ScratchFolder folder;
  folder.write("a/images_001/images/x.png", "1");
  folder.write("a/images_002/images/y.png", "2");
  folder.write("b/set/train/p1/view.jpg", "3");
  folder.write("b/set/train/p2/view.jpg", "4");
  Manifest m;
  m.images = {"x.png", "y.png", "set/train/p2/view.jpg"};
  const std::vector<uint32_t> all = {0, 1, 2};
  Stores stores;
  const auto index =
      ImageIndex::scan(m, all, {folder / "a", folder / "b"}, stores);
  CHECK(path_of(index, 0).ends_with("images_001/images/x.png"));
  CHECK(path_of(index, 2).ends_with("train/p2/view.jpg"));
  CHECK(ImageIndex::from_text(index.to_text()) == index);
  CHECK(error_of<AbsentError>([&] {
          ImageIndex::scan(m, all, {folder / "a"}, stores);
        }).find("1 of 3 images are missing") != std::string::npos);
  CHECK(error_of<AbsentError>([&] {
          ImageIndex::scan(m, all, {folder / "c"}, stores);
        }).find("No such file") != std::string::npos);
  folder.write("b/copy/x.png", "5");
  CHECK(error_of<DataError>([&] {
          ImageIndex::scan(m, all, {folder / "a", folder / "b"}, stores);
        }).find("two places") != std::string::npos);
}

TEST_CASE("the complete NIH table has the published counts") {
  const auto xray = xray_folder();
  if (xray.empty()) return;
  DataConfig config =
      nih((xray / "nih_tables/Data_Entry_2017_v2020.csv.gz").string());
  config.train_list = (xray / "nih_tables/train_val_list.txt").string();
  config.test_list = (xray / "nih_tables/test_list.txt").string();
  const Manifest m = read_manifest(config);
  CHECK(m.size() == 112120);
  CHECK(std::set<std::string>(m.patients.begin(), m.patients.end()).size() ==
        30805);
  const Splits splits = make_splits(m, config);
  CHECK(splits.test.rows.size() == 25596);
  CHECK(splits.train.rows.size() + splits.val.rows.size() == 86524);
  // Atelectasis … Hernia of train_val and test (README of the tables).
  const std::vector<int> train_val = {8280, 1707, 8659, 13782, 4034, 4708, 876,
                                      2637, 2852, 1378, 1423,  1251, 2242, 141};
  const std::vector<int> test = {3279, 1069, 4658, 6112, 1748, 1623, 555,
                                 2665, 1815, 925,  1093, 435,  1143, 86};
  for (size_t k = 0; k < 14; ++k) {
    const auto count = [&](const Split& split) {
      return std::ranges::count_if(
          split.rows, [&](uint32_t row) { return m.label_row(row)[k] == 1; });
    };
    CHECK(count(splits.train) + count(splits.val) == train_val[k]);
    CHECK(count(splits.test) == test[k]);
  }
}

TEST_CASE("the CheXpert layout reads with patients from its paths") {
  const auto xray = xray_folder();
  if (xray.empty()) return;
  DataConfig config;
  config.manifest.format = {ManifestFormat::kChexpert};
  config.manifest.path = {
      (xray / "chexpert_layout/CheXpert-v1.0-small/train.csv").string()};
  const Manifest m = read_manifest(config);
  REQUIRE(m.size() == 200);
  CHECK(m.finding_count() == 14);
  CHECK(m.patients[0] == "patient00193");
  CHECK(m.studies[0] == "study1");
  const auto cells = [&](float v) { return std::ranges::count(m.labels, v); };
  CHECK(cells(1) == 297);
  CHECK(cells(0) == 782 + 1701);
  config.uncertain = {TrainingPolicy::kOne};
  config.blank = LabelPolicy::kIgnore;
  const Manifest filled = read_manifest(config);
  CHECK(std::ranges::count(filled.labels, 1.0f) == 317);
  CHECK(std::ranges::count(filled.labels, 0.0f) == 782);
  std::vector<uint32_t> rows(m.size());
  std::iota(rows.begin(), rows.end(), 0u);
  Stores stores;
  const auto index =
      ImageIndex::scan(m, rows, {(xray / "chexpert_layout").string()}, stores);
  CHECK(path_of(index, 0).ends_with("patient00193/study1/view1_frontal.jpg"));
}
