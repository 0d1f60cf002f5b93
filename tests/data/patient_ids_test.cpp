#include "chexnet/data/patient_ids.hpp"

#include <sys/stat.h>

#include <fstream>

#include "chexnet/core/error.hpp"
#include "chexnet/data/split_table.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

const std::string kKey(32, 'k'), kOtherKey(32, 'o');

Config config_of(ManifestFormat format, const std::filesystem::path& key) {
  Config config;
  config.data.manifest.format = {format};
  config.privacy.key = key.string();
  return config;
}

}  // namespace

TEST_CASE("a pseudonym tells patients and keys apart, and no more") {
  const PatientIds ids(kKey);
  const std::string a = ids.in_files("12345"), b = ids.in_files("12346");
  CHECK(is_pseudonym(a));
  CHECK(a == PatientIds(kKey).in_files("12345"));
  CHECK(a != b);
  CHECK(a.substr(0, 6) == b.substr(0, 6));  // of one key
  CHECK(a.find("12345") == std::string::npos);
  const PatientIds other(kOtherKey);
  CHECK(ids.is_own(b));
  CHECK_FALSE(other.is_own(b));
  CHECK(other.in_files("12345").substr(7) != a.substr(7));
  CHECK(PatientIds().in_files("12345") == "12345");
}

TEST_CASE("an id of a table is no pseudonym by chance") {
  for (const char* id : {"", "1", "p1234", "patient00001",
                         "p12ab-0123456789abcde", "p12ab-0123456789abcdeg",
                         "p12aB-0123456789abcdef", "x12ab-0123456789abcdef",
                         "p12ab_0123456789abcdef", "p12ab-0123456789abcdef0"})
    CHECK_FALSE(is_pseudonym(id));
  CHECK(is_pseudonym("p12ab-0123456789abcdef"));
}

TEST_CASE("the public layouts keep their ids, a site's table gets pseudonyms") {
  const ScratchFolder folder;
  const auto key = folder.path() / "key";
  CHECK(patient_ids(config_of(ManifestFormat::kNih, key)).in_files("7") == "7");
  CHECK(patient_ids(config_of(ManifestFormat::kChexpert, key)).in_files("7") ==
        "7");
  CHECK_FALSE(std::filesystem::exists(key));
  Config config = config_of(ManifestFormat::kCsv, key);
  const std::string made = patient_ids(config).in_files("7");
  CHECK(is_pseudonym(made));
  CHECK(patient_ids(config).in_files("7") == made);  // the key stays
  struct stat info {};
  REQUIRE(::stat(key.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  // Of several tables one is enough.
  config.data.manifest.format = {ManifestFormat::kNih, ManifestFormat::kCsv};
  CHECK(patient_ids(config).in_files("7") == made);
  config.privacy.ids = PatientIdForm::kPlain;
  CHECK(patient_ids(config).in_files("7") == "7");
  config.data.manifest.format = {ManifestFormat::kNih};
  config.privacy.ids = PatientIdForm::kPseudonym;
  CHECK(patient_ids(config).in_files("7") == made);
}

TEST_CASE("a key that others can read, or that is short, is refused") {
  const ScratchFolder folder;
  const auto key = folder.write("key", kKey);
  ::chmod(key.c_str(), 0640);
  const Config config = config_of(ManifestFormat::kCsv, key);
  CHECK(error_of<CheckpointError>([&] {
          patient_ids(config);
        }).find("privacy.key") != std::string::npos);
  ::chmod(key.c_str(), 0600);
  CHECK(is_pseudonym(patient_ids(config).in_files("7")));
  std::ofstream(key, std::ios::trunc) << "short";
  CHECK(error_of<DataError>([&] { patient_ids(config); }).find("5 bytes") !=
        std::string::npos);
}

TEST_CASE("who has no key, or another one, cannot read pseudonyms") {
  const ScratchFolder folder;
  const auto key = folder.write("key", kKey),
             other = folder.write("o", kOtherKey);
  ::chmod(key.c_str(), 0600);
  ::chmod(other.c_str(), 0600);
  const std::string written = PatientIds(kKey).in_files("7");
  const auto read = [&](const std::filesystem::path& path) {
    return ids_as_written({std::nullopt, path.string()}, {written});
  };
  REQUIRE(read(key));
  CHECK(read(key)->in_files("7") == written);
  CHECK_FALSE(read(other));
  CHECK_FALSE(read(folder.path() / "none"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "none"));  // none is made
  CHECK(ids_as_written({}, {"7"})->in_files("7") == "7");
  // A site's own table may hold what looks like one.
  CHECK(ids_as_written({}, {written, "7"})->in_files("7") == "7");
}

TEST_CASE("a list of splits comes back as it was written") {
  const ScratchFolder folder;
  Manifest manifest;
  manifest.images = {"a.png", "b, c.png", "d.png"};
  manifest.patients = {"1", "\"2\"", "3"};
  Splits splits;
  splits.train.name = "train";
  splits.train.rows = {1, 0};
  splits.test.name = "test";
  splits.test.rows = {2};
  const PatientIds ids(kKey);
  const auto path = folder.path() / "split.csv";
  write_splits_csv(path, split_rows(manifest, splits, ids));
  const auto rows = read_splits_csv(path);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].image == "b, c.png");
  CHECK(rows[0].patient == ids.in_files("\"2\""));
  CHECK(rows[0].split == "train");
  CHECK(rows[2].split == "test");
  write_splits_csv(path, split_rows(manifest, splits, {}));
  CHECK(read_splits_csv(path)[0].patient == "\"2\"");
}

TEST_CASE("a damaged list of splits is refused") {
  const ScratchFolder folder;
  const std::string head = "image,patient,split\n";
  for (const char* rest :
       {"", "a,1,train", "a,1,train\nb,2\n", "a,1,\n", "a,1,trai\n",
        "a;1;train\n", "\"a,1,train\nb,2,val\n", ",1,train\n"}) {
    INFO(rest);
    CHECK_THROWS_AS(read_splits_csv(folder.write("s.csv", head + rest)),
                    DataError);
  }
}
