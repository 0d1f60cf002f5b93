#include "chexnet/data/input_images.hpp"

#include <filesystem>
#include <fstream>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_of(const InputImages& input) {
  std::vector<std::string> names;
  for (const auto& image : input.images) names.push_back(image.name);
  return names;
}

InputImages found_in(const std::vector<InputPlace>& places) {
  Stores stores;
  return find_input_images(places, stores);
}

}  // namespace

TEST_CASE("places are what is named, and the lines of lists") {
  const ScratchFolder folder;
  const std::string list = folder.write("list.txt", "b.png\r\n\n  c d.png \n");
  const auto places = input_places({"a.png", "@" + list});
  REQUIRE(places.size() == 3);
  CHECK(places[0].path == "a.png");
  CHECK_FALSE(places[0].listed);
  CHECK(places[1].path == "b.png");
  CHECK(places[2].path == "c d.png");
  CHECK(places[2].listed);
  CHECK_THROWS_AS(input_places({"@" + list + ".absent"}), AbsentError);
}

TEST_CASE("images stand in the order of naming, each once") {
  const ScratchFolder folder;
  const std::string b = folder.write("set/b/1.png", "x");
  const std::string a = folder.write("set/a/1.png", "x");
  const std::string last = folder.write("last.png", "x");
  folder.write("set/FILES.CSV", "x");
  folder.write("set/DICOMDIR", "x");
  const std::string set = (folder / "set").string();
  const InputImages input =
      found_in({{last, false}, {set, false}, {b, false}, {last, false}});
  CHECK(names_of(input) == std::vector<std::string>{last, a, b});
  CHECK(input.left_out == 2);
  REQUIRE(input.found.size() == 3);
  for (size_t i = 0; i < 3; ++i)
    CHECK(input.containers[input.found[i].location.container].path ==
          input.images[i].name);
}

TEST_CASE("a list that is named as an image is told how lists are named") {
  const ScratchFolder folder;
  const std::string list = folder.write("list.txt", "b.png\n");
  const std::string picture =
      folder.write("png.txt", std::string("\x89PNG\r\n\x1a\n\0\0\0\r", 12));
  const InputImages input =
      found_in({{list, false}, {picture, false}, {list, false}});
  REQUIRE(names_of(input) == std::vector<std::string>{list, picture});
  CHECK(input.images[0].problem ==
        "[images] " + list +
            ": is text, and no image. Hint: a list of images is given as @" +
            list);
  CHECK(input.images[1].problem.empty());
  CHECK(input.found.size() == 1);
  for (const char* name : {"l.tsv", "l.lst", "wanted"})
    CHECK(found_in({{folder.write(name, "b.png\n"), false}})
              .images[0]
              .problem.find("is text, and no image") != std::string::npos);
}

TEST_CASE("another spelling of a path names no other image") {
  const ScratchFolder folder;
  const std::string a = folder.write("set/a.png", "x");
  const std::string b = folder.write("set/in/b.png", "x");
  const std::string set = (folder / "set").string();
  const InputImages input = found_in({{a, false},
                                      {set + "/./a.png", false},
                                      {set + "//in/../a.png", false},
                                      {fs::relative(a).string(), false},
                                      {set, false}});
  CHECK(names_of(input) == std::vector<std::string>{a, set + "/in/b.png"});
  // After a link ".." leads elsewhere.
  folder.write("a.png", "x");
  folder.write("other/b.png", "x");
  fs::create_directory_symlink(folder / "other", folder / "set/link");
  CHECK(found_in({{a, false}, {set + "/link/../a.png", false}}).images.size() ==
        2);
}

TEST_CASE("a file that is named is taken whatever it is called") {
  const ScratchFolder folder;
  const std::string text = folder.write("a.txt", "x");
  CHECK(names_of(found_in({{text, false}})) == std::vector<std::string>{text});
}

TEST_CASE("what a list names and is not there keeps its place") {
  const ScratchFolder folder;
  const std::string a = folder.write("a.png", "x"),
                    b = folder.write("b.png", "x");
  const std::string gone = (folder / "gone.png").string();
  const InputImages input = found_in({{a, true}, {gone, true}, {b, true}});
  CHECK(names_of(input) == std::vector<std::string>{a, gone, b});
  CHECK(input.images[1].problem.find("No such file") != std::string::npos);
  CHECK(input.absent == 1);
  REQUIRE(input.found.size() == 2);
  CHECK(input.containers[input.found[1].location.container].path == b);

  CHECK_THROWS_AS(found_in({{gone, false}}), AbsentError);
  CHECK_THROWS_AS(found_in({{gone, true}}), AbsentError);
  CHECK_THROWS_AS(found_in({}), AbsentError);
}

TEST_CASE("parts of an archive are named after it, equal names by number") {
  const ScratchFolder folder;
  folder.write("set/1.png", "first");
  folder.write("set/notes.txt", "x");
  const std::string place = folder.path().string();
  const std::string tar = place + "/a.tar";
  REQUIRE(std::system(("cd " + place +
                       " && tar cf a.tar ./set && echo other > "
                       "set/1.png && tar rf a.tar ./set/1.png")
                          .c_str()) == 0);
  const InputImages input = found_in({{tar, false}, {tar, false}});
  const auto names = names_of(input);
  REQUIRE(names.size() == 2);
  CHECK(names[0] == tar + "/set/1.png");
  CHECK(names[1].starts_with(tar + "/set/1.png#"));
  CHECK(input.left_out == 1);
}

TEST_CASE("a damaged archive is a row behind those of its members before it") {
  const ScratchFolder folder;
  const std::string place = folder.path().string();
  for (const char* name : {"1.png", "2.png", "3.png"})
    folder.write(std::string("set/") + name, std::string(3000, *name));
  const std::string last = folder.write("last.png", "x");
  REQUIRE(std::system(("cd " + place +
                       " && tar cf a.tar --sort=name set && tar czf b.tgz "
                       "--sort=name set")
                          .c_str()) == 0);
  std::filesystem::resize_file(folder / "a.tar", 512 + 2 * (512 + 3072) + 900);
  std::fstream tgz(folder / "b.tgz", std::ios::in | std::ios::out);
  tgz.seekg(-8, std::ios::end);  // the CRC-32 of all that was packed
  const auto other = static_cast<char>(tgz.get() ^ 1);
  tgz.seekp(-8, std::ios::end);
  tgz.put(other).flush();
  folder.write("c.pack", "no pack");

  const std::string tar = place + "/a.tar";
  const InputImages input = found_in({{tar, false},
                                      {place + "/b.tgz", false},
                                      {place + "/c.pack", true},
                                      {tar, false},
                                      {last, false}});
  CHECK(names_of(input) ==
        std::vector<std::string>{tar + "/set/1.png", tar + "/set/2.png", tar,
                                 place + "/b.tgz", place + "/c.pack", last});
  CHECK(input.images[2].problem.find("the archive is cut off at byte") !=
        std::string::npos);
  CHECK(input.images[3].problem.find("incorrect data check") !=
        std::string::npos);
  CHECK(input.images[4].problem.find("[pack] ") != std::string::npos);
  CHECK(input.found.size() == 3);
  CHECK_FALSE(std::filesystem::exists(tar + ".index"));
}
