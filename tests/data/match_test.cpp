// Which stored image is for which row of the table.
#include <filesystem>
#include <numeric>

#include "chexnet/data/image_index.hpp"
#include "chexnet/data/storage/tfrecord.hpp"
#include "data/name_table.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

std::string chexpert_name(int patient) {
  char name[80];
  std::snprintf(
      name, sizeof name,
      "CheXpert-v1.0-small/train/patient%05d/study1/view1_frontal.jpg",
      patient);
  return name;
}

struct Table {
  Manifest manifest;
  std::vector<uint32_t> rows;
  explicit Table(std::vector<std::string> images) {
    manifest.images = std::move(images);
    rows.resize(manifest.images.size());
    std::iota(rows.begin(), rows.end(), 0u);
  }
};

// How many rows are missing.
size_t missing(const Table& table, const std::string& source) {
  Stores stores;
  std::vector<Container> containers;
  std::vector<uint32_t> rows;
  const auto found = find_images({source}, stores, containers);
  ImageIndex::match(table.manifest, table.rows, found, containers, rows);
  return rows.size();
}

std::string refusal(const Table& table, const std::string& source) {
  Stores stores;
  return error_of<Error>(
      [&] { ImageIndex::scan(table.manifest, table.rows, {source}, stores); });
}

std::string tar_of(const ScratchFolder& folder, const std::string& members) {
  std::string path = (folder / "x.tar").string();
  REQUIRE(std::system(("cd '" + (folder / "in").string() + "' && tar cf '" +
                       path + "' " + members)
                          .c_str()) == 0);
  return path;
}

}  // namespace

TEST_CASE(
    "matching costs each image the depth of its folders, however alike names "
    "end") {
  std::vector<std::string> names;
  constexpr int kImages = 20000;
  for (int i = 0; i < kImages; ++i) names.push_back(chexpert_name(i));
  const Table table(std::move(names));
  NameTable known(table.manifest, table.rows);
  for (int i = 0; i < kImages; ++i) {
    const auto rows = known.rows_for("/data/sets/" + chexpert_name(i));
    REQUIRE(rows == std::vector<uint32_t>{static_cast<uint32_t>(i)});
  }
  CHECK(
      known.rows_for("/data/other/train/patient00001/study1/view1_frontal.jpg")
          .empty());
  CHECK(known.rows_for("view1_frontal.jpg").empty());
  CHECK(known.lookups() <= 8 * (kImages + 2));
}

TEST_CASE(
    "a name without folders serves a row with folders only where it is the "
    "only one") {
  const ScratchFolder folder;
  folder.write("in/view1_frontal.jpg", "1");
  folder.write("in/other.jpg", "2");
  const std::string tar = tar_of(folder, "view1_frontal.jpg other.jpg");
  const Table table(
      {chexpert_name(1), chexpert_name(2), "set/train/other.jpg"});
  CHECK(missing(table, tar) == 2);
  CHECK(refusal(table, tar).find("2 of 3 images are missing") !=
        std::string::npos);
  CHECK(missing(Table({chexpert_name(1), "set/train/other.jpg"}), tar) == 0);
}

TEST_CASE("a file is found however its folder is spelled") {
  const ScratchFolder folder;
  folder.write("in/p1/a.png", "1");
  const fs::path in = folder / "in";
  const fs::path before = fs::current_path();
  const std::vector<std::string> names = {"in/p1/a.png",
                                          (in / "p1/a.png").string()};
  for (const auto& name : names) {
    CHECK(missing(Table({name}), in.string()) == 0);
    fs::current_path(in);
    for (const char* source : {".", "p1", "../in", "./p1/../p1/a.png"})
      CHECK(missing(Table({name}), source) == 0);
    fs::current_path(before);
  }
  const std::string error = refusal(Table({"b/c/a.png"}), in.string());
  CHECK(error.find("A path must end with the whole name in the table (the "
                   "first has 2 folders)") != std::string::npos);
}

TEST_CASE("one place serves one row") {
  const ScratchFolder folder;
  folder.write("in/p1/a.png", "1");
  const Table table({"a.png", "p1/a.png"});
  const std::string error = refusal(table, (folder / "in").string());
  CHECK(error.find("p1/a.png is the place of two images of the table, those of "
                   "row 1 of  and row 2 of ") != std::string::npos);
}

TEST_CASE("equal names inside one container are two places") {
  const ScratchFolder folder;
  folder.write("in/p1/a.png", "1");
  std::string tar = tar_of(folder, "p1/a.png p1/a.png");
  // tar stores the second as a link to the first unless told otherwise.
  REQUIRE(std::system(("cd '" + (folder / "in").string() + "' && tar cf '" +
                       tar + "' p1/a.png && tar rf '" + tar + "' p1/a.png")
                          .c_str()) == 0);
  CHECK(refusal(Table({"a.png"}), tar).find("is in two places") !=
        std::string::npos);
  std::string records;
  for (int i = 0; i < 2; ++i) {
    Example example;
    const std::string content = "content " + std::to_string(i);
    example.image = std::as_bytes(std::span(content));
    example.filename = "a.png";
    append_record(records, encode_example(example));
  }
  const std::string shard = folder.write("train-00000-of-00001", records);
  CHECK(refusal(Table({"a.png"}), shard).find("is in two places") !=
        std::string::npos);
}

TEST_CASE("a file that is reached by several links is one place") {
  const ScratchFolder folder;
  folder.write("in/images/a.png", "1");
  folder.write("in/images/b.png", "2");
  fs::create_directory_symlink("images", folder / "in/again");
  fs::create_directories(folder / "in/more");
  fs::create_hard_link(folder / "in/images/b.png", folder / "in/more/b.png");
  CHECK(missing(Table({"a.png", "b.png"}), (folder / "in").string()) == 0);
  // One file may serve two rows under two names.
  fs::create_hard_link(folder / "in/images/b.png", folder / "in/more/c.png");
  CHECK(missing(Table({"a.png", "b.png", "c.png"}), (folder / "in").string()) ==
        0);
}

TEST_CASE("control characters of a name reach no message") {
  const ScratchFolder folder;
  folder.write("in/p1/a\x1b[2J.png", "1");
  folder.write("in/p2/a\x1b[2J.png", "1");
  const std::string error =
      refusal(Table({"a\x1b[2J.png"}), (folder / "in").string());
  CHECK(error.find("is in two places") != std::string::npos);
  CHECK(error.find('\x1b') == std::string::npos);
}

TEST_CASE("the index of rank 0 is not believed blindly") {
  const ScratchFolder folder;
  folder.write("in/a\nb\t.png", "1");
  folder.write("in/c.png", "22");
  const Table table({"c.png", "a\nb\t.png"});
  Stores stores;
  const ImageIndex files = ImageIndex::scan(table.manifest, table.rows,
                                            {(folder / "in").string()}, stores);
  CHECK(ImageIndex::from_text(files.to_text()) == files);
  const ImageIndex index = ImageIndex::scan(table.manifest, table.rows,
                                            {tar_of(folder, "*")}, stores);
  const std::string good = index.to_text();
  CHECK(ImageIndex::from_text(good) == index);
  for (const std::string& head :
       {std::string("2\t9\n"), std::string("1\t1\n"), std::string("x\t1\n"),
        std::string("2\t-1\n"), std::string("99999999999999999999\t1\n")}) {
    INFO(head);
    CHECK_FALSE(error_of<DataError>([&] {
                  ImageIndex::from_text(head +
                                        good.substr(good.find('\n') + 1));
                }).empty());
  }
  std::string kind = good;
  kind.replace(good.find('\n') + 1, 1, "7");
  CHECK_FALSE(
      error_of<DataError>([&] { ImageIndex::from_text(kind); }).empty());
  CHECK_FALSE(error_of<DataError>([&] { ImageIndex::from_text(""); }).empty());
}
