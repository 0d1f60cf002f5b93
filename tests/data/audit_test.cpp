// The findings of an audit of a data set, one at a time.
#include "chexnet/data/audit.hpp"

#include <filesystem>

#include "chexnet/data/image/encode.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// A different picture for each seed, of `side` pixels: smooth, so that its
// sketch means something.
std::vector<uint8_t> seeded_picture(int seed, int side) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      pixels.push_back(static_cast<uint8_t>(
          (x * (3 + seed * 7) + y * (2 + seed * 11) + seed * 40) * 16 / side));
  return pixels;
}

// The tables of `config`, whose images are not there.
Audit look_at(const DataConfig& config) {
  const Manifest manifest = read_manifest(config);
  Stores stores;
  return audit(config, manifest, make_splits(manifest, config), stores, 1,
               [](size_t, size_t) {});
}

// Four images of four patients: two to train on, one to validate, one to test.
struct AuditedSet {
  ScratchFolder folder;
  Manifest manifest;
  Splits splits;
  DataConfig config;
  Stores stores;

  AuditedSet() {
    manifest.findings = {"Edema", "Hernia"};
    for (int i = 0; i < 4; ++i) {
      add_row("p" + std::to_string(i), {i == 0 ? 1.0f : 0.0f, 0.0f});
      write(i, seeded_picture(i, 32), 32);
    }
    splits.train = {"train", {0, 1}, ""};
    splits.val = {"val", {2}, ""};
    splits.test = {"test", {3}, ""};
    config.images = {folder.path().string()};
    config.manifest.format = {ManifestFormat::kCsv};
  }
  static std::string name(int i) { return std::to_string(i) + ".png"; }
  void add_row(const std::string& patient, const std::vector<float>& labels) {
    const auto row = static_cast<uint32_t>(manifest.images.size());
    manifest.images.push_back(name(static_cast<int>(row)));
    manifest.rows.emplace(manifest.images.back(), row);
    manifest.patients.push_back(patient);
    manifest.sexes.emplace_back("F");
    manifest.views.emplace_back("PA");
    manifest.ages.push_back(20);
    manifest.labels.insert(manifest.labels.end(), labels.begin(), labels.end());
  }
  void write(int i, const std::vector<uint8_t>& pixels, int side) const {
    const auto png = encode_gray_png(pixels.data(), side, side);
    folder.write(name(i),
                 {reinterpret_cast<const char*>(png.data()), png.size()});
  }
  Audit look() {
    size_t done = 0;
    Audit found = audit(config, manifest, splits, stores, 2,
                        [&](size_t now, size_t) { done = now; });
    CHECK(done + found.missing.size() == 4);
    return found;
  }
};

}  // namespace

TEST_CASE("a sound set is clean, and its splits are counted") {
  AuditedSet set;
  const Audit found = set.look();
  CHECK(found.clean());
  REQUIRE(found.splits.size() == 3);
  const auto& train = found.splits[0];
  CHECK(train.name == "train");
  CHECK((train.images == 2 && train.patients == 2));
  CHECK(train.positives == std::vector<size_t>{1, 0});
  CHECK(train.no_finding == 1);
  CHECK(train.subgroups.at("sex F").images == 2);
  CHECK(train.subgroups.at("age 18-39").images == 2);  // as evaluate has
  CHECK(found.sizes.at("32 x 32") == 4);
  CHECK((found.missing.empty() && found.corrupt.empty() &&
         found.duplicates.empty()));
  CHECK((found.flat.empty() && found.odd_sized.empty() &&
         found.unlisted.empty()));
}

TEST_CASE(
    "what is missing, unlisted, damaged, flat or of another size is named") {
  AuditedSet set;
  fs::remove(set.folder / "1.png");
  set.folder.write("2.png", "no picture");
  set.write(3, std::vector<uint8_t>(24 * 24, 7), 24);
  set.folder.write("other.png", "not in the table");
  const Audit found = set.look();
  CHECK_FALSE(found.clean());
  CHECK(found.missing == std::vector<std::string>{"1.png"});
  REQUIRE(found.unlisted.size() == 1);
  CHECK(found.unlisted[0].ends_with("other.png"));
  REQUIRE(found.corrupt.size() == 1);
  CHECK(found.corrupt[0].find("2.png") != std::string::npos);
  CHECK(found.flat == std::vector<std::string>{"3.png"});
  CHECK(found.sizes.size() == 2);
}

TEST_CASE("tables and lists that the config names are no strangers") {
  AuditedSet set;
  set.folder.write("table.csv", "image");
  set.folder.write("train.txt", "0.png");
  set.folder.write("withdrawn.txt", "");
  set.folder.write("boxes.csv", "");
  set.config.manifest.path = {(set.folder / "table.csv").string()};
  set.config.train_list =
      (set.folder / "../" / set.folder.path().filename() / "train.txt")
          .string();
  set.config.exclude = (set.folder / "withdrawn.txt").string();
  const Audit found = set.look();
  REQUIRE(found.unlisted.size() == 1);
  CHECK(found.unlisted[0].ends_with("boxes.csv"));
}

TEST_CASE("entries of -1 are counted, whatever they count as in training") {
  const ScratchFolder folder;
  DataConfig config;
  config.manifest.format = {ManifestFormat::kCsv};
  config.manifest.path = {folder.write("t.csv",
                                       "image,A,B\n1.png,-1,0\n2.png,1,-1\n"
                                       "3.png,-1,\n4.png,-1,1\n")};
  config.manifest.columns.image = "image";
  config.val_fraction = 0;
  config.test_list = folder.write("test.txt", "4.png\n");
  for (const auto policy : {TrainingPolicy::kIgnore, TrainingPolicy::kOne,
                            TrainingPolicy::kSmooth}) {
    config.uncertain = {policy, {{"A", TrainingPolicy::kZero}}};
    const Audit found = look_at(config);
    REQUIRE(found.splits.size() == 2);
    CHECK(found.splits[0].uncertain == std::vector<size_t>{2, 1});
    CHECK(found.splits[1].uncertain == std::vector<size_t>{1, 0});
  }
}

TEST_CASE("entries of -1 are counted where a table of several has them") {
  const ScratchFolder folder;
  const std::string certain = folder.write("a.csv", "image,A,B\n1.png,0,1\n");
  const std::string uncertain =
      folder.write("b.csv", "image,B,C\n2.png,-1,0\n3.png,-1,-1\n");
  for (const auto& tables :
       {std::vector{certain, uncertain}, std::vector{uncertain, certain}}) {
    DataConfig config;
    config.manifest.format = {ManifestFormat::kCsv};
    config.manifest.path = tables;
    config.manifest.columns.image = "image";
    config.val_fraction = 0;
    config.findings = {"C", "A", "B"};
    const Audit found = look_at(config);
    REQUIRE(found.splits.size() == 1);
    CHECK(found.splits[0].uncertain == std::vector<size_t>{1, 0, 2});
  }
}

TEST_CASE(
    "the same picture in two splits is a leak, in one split only counted") {
  AuditedSet set;
  set.write(1, seeded_picture(0, 32), 32);
  const Audit within = set.look();
  CHECK(within.duplicates ==
        std::vector<std::vector<std::string>>{{"0.png", "1.png"}});
  CHECK(within.clean());
  set.write(3, seeded_picture(2, 32), 32);
  const Audit across = set.look();
  CHECK(across.duplicates.size() == 2);
  REQUIRE(across.leaks.size() == 1);
  CHECK(across.leaks[0] == "2.png (val) and 3.png (test) are the same picture");
  CHECK(across.near_duplicates.empty());
}

TEST_CASE("a patient in two splits is a leak") {
  AuditedSet set;
  set.manifest.patients[3] = "p0";
  const Audit found = set.look();
  CHECK(found.leaks ==
        std::vector<std::string>{"patient p0 is in test and train"});
}

TEST_CASE("rows of no split are not looked for, and no strangers on the disk") {
  AuditedSet set;
  set.splits.test.rows.clear();
  fs::remove(set.folder / "3.png");
  size_t all = 0;
  const Audit found = audit(set.config, set.manifest, set.splits, set.stores, 1,
                            [&](size_t, size_t images) { all = images; });
  CHECK(all == 3);
  CHECK(found.missing.empty());
  CHECK(found.splits.size() == 2);
}

TEST_CASE("a table of another size than NIH's is compared with nothing") {
  AuditedSet set;
  set.config.manifest.format = {ManifestFormat::kNih};
  const Audit found = set.look();
  REQUIRE(found.known.size() == 1);
  CHECK(found.known[0].find("the table has 4 images") == 0);
  CHECK_FALSE(found.known_differs);
}
