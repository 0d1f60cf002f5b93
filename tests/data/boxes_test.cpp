#include "chexnet/data/boxes.hpp"

#include <map>

#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/manifest.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/phantom_set.hpp"

using namespace chexnet;

namespace {

const std::string kHeader = "Image Index,Finding Label,Bbox [x,y,w,h],,,\n";

std::string refusal(const std::string& text) {
  const ScratchFolder folder;
  return error_of<DataError>([&] { read_boxes(folder.write("b.csv", text)); });
}

}  // namespace

TEST_CASE("a list of boxes is read with or without NIH's last commas") {
  const ScratchFolder folder;
  const auto boxes = read_boxes(
      folder.write("b.csv", kHeader + "a.png,Mass,1.5,2,30,40,,,\r\n" +
                                "a.png,Infiltrate,0,-3,5.25,6\n"));
  REQUIRE(boxes.size() == 2);
  CHECK(boxes[0].image == "a.png");
  CHECK(boxes[0].finding == "Mass");
  CHECK(boxes[0].x == 1.5);
  CHECK(boxes[0].height == 40);
  CHECK(boxes[0].line == 2);
  CHECK(boxes[1].y == -3);
  CHECK(boxes[1].width == 5.25);
  CHECK(find_finding(nih_findings(), boxes[1].finding) ==
        find_finding(nih_findings(), "Infiltration"));
}

TEST_CASE("a list of boxes with semicolons or tabs reads alike") {
  const ScratchFolder folder;
  for (const char* text :
       {"Image Index;Finding Label;Bbox [x;y;w;h]\na.png;Mass;1.5;2;3;4\n",
        "Image Index;Finding Label;Bbox [x,y,w,h];;\na.png;Mass;1.5;2;3;4\n",
        "Image Index\tFinding Label\tBbox [x,y,w,h]\na.png\tMass\t1.5\t2\t3\t"
        "4\n"}) {
    const auto boxes = read_boxes(folder.write("b.csv", text));
    REQUIRE(boxes.size() == 1);
    CHECK(boxes[0].finding == "Mass");
    CHECK(boxes[0].x == 1.5);
    CHECK(boxes[0].height == 4);
  }
}

TEST_CASE("what is no list of boxes is refused with its line") {
  CHECK(refusal("Image Index,Finding Labels\n").find("b.csv:1: this is no") !=
        std::string::npos);
  CHECK(refusal("").find("this is no list of boxes") != std::string::npos);
  CHECK(
      refusal(kHeader + "a.png,Mass,1,2,3\n").find("b.csv:2: the row has 5") !=
      std::string::npos);
  CHECK(refusal(kHeader + "a.png,Mass,1,x2,3,4\n").find("'x2' is no number") !=
        std::string::npos);
  CHECK(
      refusal(kHeader + "a.png,Mass,1,nan,3,4\n").find("'nan' is no number") !=
      std::string::npos);
  CHECK(refusal(kHeader + "a.png,Mass,1,2,0,4\n").find("has no area") !=
        std::string::npos);
  CHECK(refusal(kHeader + "a.png,,1,2,3,4\n").find("no finding") !=
        std::string::npos);
  CHECK(refusal(kHeader + "a\xff.png,Mass,1,2,3,4\n").find("not UTF-8") !=
        std::string::npos);
}

TEST_CASE(
    "each box of a phantom set is within its picture and of a finding "
    "that it has") {
  const ScratchFolder folder;
  const Manifest manifest = draw_phantom_set(folder.path() / "set", 60, 64);
  const auto boxes = read_boxes((folder / "set/BBox_List_2017.csv").string());
  CHECK(boxes.size() > 20);
  for (const auto& box : boxes) {
    const auto k = find_finding(manifest.findings, box.finding);
    REQUIRE(k);
    CHECK(manifest.label_row(manifest.rows.at(box.image))[*k] == 1);
    CHECK((box.x >= 0 && box.y >= 0));
    CHECK((box.x + box.width <= 64.001 && box.y + box.height <= 64.001));
  }
}

TEST_CASE("NIH's list is read whole") {
  const auto folder = xray_folder();
  if (folder.empty()) return;
  const auto boxes =
      read_boxes((folder / "nih_tables/BBox_List_2017.csv").string());
  CHECK(boxes.size() == 984);
  std::map<std::string, int> of_image;
  for (const auto& box : boxes) {
    ++of_image[box.image];
    CHECK(find_finding(nih_findings(), box.finding));
  }
  CHECK(of_image.size() == 880);
}
