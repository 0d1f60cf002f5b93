#include "chexnet/eval/localization.hpp"

#include <array>
#include <cmath>

#include "eval/map_regions.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

Manifest manifest_of(int images) {
  Manifest manifest;
  manifest.findings = {"Mass", "Infiltration"};
  for (int i = 0; i < images; ++i) {
    manifest.images.push_back("i" + std::to_string(i));
    manifest.patients.push_back("p" + std::to_string(i / 2));
    // Uncertain, or not there by the table: boxes count all the same.
    manifest.labels.insert(manifest.labels.end(), {NAN, 0});
  }
  return manifest;
}

FindingBox drawn(const std::string& image, const std::string& finding, double x,
                 double y, double side) {
  return {image, finding, x, y, side, side, 0};
}

MapScore scored(bool pointed, double iou) {
  return {MapScore::State::kScored, 0, pointed, iou, 2};
}

// 4 x 4 pixels, hot at (x, y), of the whole picture.
HeatMap hot_at(int x, int y) {
  HeatMap map{4, 4, std::vector<float>(16, -1), {}, {}};
  map.values[static_cast<size_t>(4 * y + x)] = 3;
  return map;
}

}  // namespace

TEST_CASE("boxes become cases by image and finding") {
  const Manifest manifest = manifest_of(4);
  const std::vector<FindingBox> boxes = {
      drawn("i2", "Infiltrate", 1, 1, 9), drawn("i0", "Mass", 0, 0, 5),
      drawn("i2", "mass", 3, 3, 5),       drawn("i0", "Mass", 50, 50, 5),
      drawn("i3", "Mass", 3, 3, 5),       drawn("elsewhere", "Mass", 3, 3, 5),
      drawn("i0", "Cyst", 3, 3, 5)};
  const std::array<uint32_t, 3> rows = {2, 0, 1};
  const BoxedCases found = boxed_cases(boxes, manifest, rows);
  REQUIRE(found.cases.size() == 3);
  CHECK((found.cases[0].row == 0 && found.cases[0].finding == 0));
  CHECK(found.cases[0].boxes.size() == 2);
  CHECK((found.cases[1].row == 2 && found.cases[1].finding == 0));
  CHECK((found.cases[2].row == 2 && found.cases[2].finding == 1));
  CHECK(found.other_images == 2);
  CHECK(found.unknown_findings == std::vector<std::string>{"Cyst"});
}

TEST_CASE("regions are joined by the eight neighbors of a pixel") {
  const std::vector<float> values = {9, 0, 0, 0,  //
                                     0, 9, 0, 0,  //
                                     0, 0, 0, 9,  //
                                     0, 0, 0, 9};
  const auto regions = regions_above(values, 4, 5);
  REQUIRE(regions.size() == 2);
  CHECK(regions[0] == PixelBox{0, 0, 2, 2});
  CHECK(regions[1] == PixelBox{3, 2, 4, 4});
  CHECK(regions_above(values, 4, 9.5f).empty());
  CHECK(regions_above(values, 4, -1).size() == 1);
}

TEST_CASE("a map points at a box that holds the center of its highest pixel") {
  // Pixel (2, 1) of 4 x 4 is centered at 62.5, 37.5 of 100 pixels.
  const HeatMap map = hot_at(2, 1);
  const std::vector<FindingBox> beside = {drawn("", "", 0, 0, 30),
                                          drawn("", "", 64, 30, 20)},
                                within = {drawn("", "", 0, 0, 10),
                                          drawn("", "", 60, 35, 4)};
  CHECK_FALSE(score_map(map, beside, {100, 100}, 64).pointed);
  CHECK(score_map(map, within, {100, 100}, 64).pointed);
  // On a picture twice as wide the same numbers are another area.
  CHECK_FALSE(score_map(map, within, {200, 100}, 64).pointed);
}

TEST_CASE("the IoU is that of the best box around a region of the map") {
  const HeatMap map = hot_at(2, 1);
  const auto boxes = boxes_of_map(map, 64);
  REQUIRE(boxes.size() == 2);  // of the cut at 60 and of that at 180
  CHECK(boxes[0].area() > boxes[1].area());
  // By hand: along a line through its center the enlarged map falls by 4 / 16
  // a pixel from there; the cut at 180 of 255 is at 16 * (1 - 180 / 255) = 4.7
  // pixels on either side, less where the line is beside the center.
  CHECK(boxes[1].left * 64 == Approx(35).margin(1.01));
  CHECK(boxes[1].right * 64 == Approx(45).margin(1.01));
  for (const Box& box : boxes) {
    const FindingBox same{"",
                          "",
                          100 * box.left,
                          50 * box.top,
                          100 * (box.right - box.left),
                          50 * (box.bottom - box.top),
                          0};
    CHECK(score_map(map, std::vector{same}, {100, 50}, 64).iou ==
          Approx(1).epsilon(1e-12));
  }
  CHECK(score_map(map, std::vector{drawn("", "", 0, 60, 10)}, {100, 100}, 64)
            .iou == 0);
}

TEST_CASE("a map that is the same everywhere has no region") {
  const HeatMap flat{2, 2, {1, 1, 1, 1}, {}, {}};
  const auto score =
      score_map(flat, std::vector{drawn("", "", 0, 0, 9)}, {9, 9}, 32);
  CHECK(score.iou == 0);
  CHECK(score.map_boxes == 0);
}

TEST_CASE("boxes are cut at the picture's edge, and those outside left out") {
  const HeatMap map = hot_at(3, 3);
  const auto score = [&](std::vector<FindingBox> boxes) {
    return score_map(map, boxes, {100, 100}, 64);
  };
  const auto reaching = score({drawn("", "", 70, 70, 60)});
  CHECK(reaching.state == MapScore::State::kScored);
  CHECK(reaching.cut_boxes == 1);
  CHECK(reaching.pointed);
  // Of what is inside.
  CHECK(reaching.iou == score({drawn("", "", 70, 70, 30)}).iou);
  CHECK(score({drawn("", "", 70.5, 70, 30.2)}).cut_boxes == 0);  // rounding
  const auto outside = score({drawn("", "", 300, 300, 60)});
  CHECK(outside.state == MapScore::State::kOutside);
  CHECK(score({drawn("", "", 300, 300, 60), drawn("", "", 70, 70, 10)}).state ==
        MapScore::State::kScored);
}

TEST_CASE("figures are shares of the cases of each finding, and their mean") {
  const Manifest manifest = manifest_of(6);
  std::vector<FindingBox> boxes;
  for (int i = 0; i < 6; ++i)
    boxes.push_back(drawn("i" + std::to_string(i), "Mass", 0, 0, 5));
  boxes.push_back(drawn("i1", "Infiltrate", 0, 0, 5));
  boxes.push_back(drawn("i4", "Infiltrate", 0, 0, 5));
  const std::array<uint32_t, 6> rows = {0, 1, 2, 3, 4, 5};
  BoxedCases asked = boxed_cases(boxes, manifest, rows);
  REQUIRE(asked.cases.size() == 8);
  // Mass of i0, Mass and Infiltrate of i1, Mass of i2, i3, i4, …
  std::vector<MapScore> scores = {scored(true, 0.75), scored(true, 0.31),
                                  scored(true, 0.5),  scored(false, 0),
                                  MapScore{},         scored(true, 0.3),
                                  scored(false, 0.1), scored(false, 0.69)};
  scores[4].state = MapScore::State::kDamaged;
  const Localization found =
      localization_of(std::move(asked), scores, manifest, {.resamples = 500});
  REQUIRE(found.findings.size() == 2);
  const FindingLocalization& mass = found.findings[0];
  CHECK(mass.finding == "Mass");
  CHECK(mass.cases == 5);
  CHECK(mass.few_cases());
  CHECK(mass.pointing.value == Approx(3.0 / 5));
  CHECK(mass.iou_at[0].value == Approx(4.0 / 5));
  CHECK(mass.iou_at[2].value == Approx(4.0 / 5));
  CHECK(mass.iou_at[6].value == Approx(1.0 / 5));
  CHECK(mass.mean_iou == Approx((0.75 + 0.31 + 0 + 0.3 + 0.69) / 5));
  CHECK(mass.boxes_per_map == 2);
  CHECK(found.findings[1].pointing.value == Approx(1.0 / 2));
  CHECK(found.mean_pointing.value == Approx((3.0 / 5 + 1.0 / 2) / 2));
  CHECK(found.cases == 7);
  CHECK(found.images == 5);
  CHECK(found.patients == 3);
  CHECK(found.damaged == 1);
  CHECK_FALSE(mass.pointing.interval);  // of three patients
}

TEST_CASE("a mean that counts a finding of few patients has no interval") {
  const Manifest manifest = manifest_of(12);
  std::vector<FindingBox> boxes;
  std::vector<uint32_t> rows;
  std::vector<MapScore> scores;
  for (uint32_t i = 0; i < 12; ++i) {
    rows.push_back(i);
    boxes.push_back(drawn("i" + std::to_string(i), "Mass", 0, 0, 5));
    scores.push_back(scored(i % 3 == 0, 0));
  }
  const auto found = [&] {
    return localization_of(boxed_cases(boxes, manifest, rows), scores, manifest,
                           {.resamples = 500});
  };
  const Localization enough = found();
  const auto& interval = enough.findings[0].pointing.interval;
  REQUIRE(interval);
  CHECK(interval->interval.low < 4.0 / 12);
  CHECK(interval->interval.high > 4.0 / 12);
  CHECK(enough.mean_pointing.interval->interval == interval->interval);

  boxes.push_back(drawn("i11", "Infiltrate", 0, 0, 5));
  scores.push_back(scored(true, 0));
  const Localization few = found();
  CHECK(few.findings[0].pointing.interval);
  CHECK_FALSE(few.findings[1].pointing.interval);
  CHECK(few.mean_pointing.value == Approx((4.0 / 12 + 1) / 2));
  CHECK_FALSE(few.mean_pointing.interval);
  CHECK((enough.in_mean().findings == 1 && enough.in_mean().few == 0));
  CHECK((few.in_mean().findings == 2 && few.in_mean().few == 1));
}

TEST_CASE("the pointing game is also told of the cases called positive") {
  const Manifest manifest = manifest_of(4);
  std::vector<FindingBox> boxes = {drawn("i0", "Infiltrate", 0, 0, 5)};
  for (int i = 0; i < 4; ++i)
    boxes.push_back(drawn("i" + std::to_string(i), "Mass", 0, 0, 5));
  const std::array<uint32_t, 4> rows = {0, 1, 2, 3};
  BoxedCases asked = boxed_cases(boxes, manifest, rows);
  REQUIRE(asked.cases.size() == 5);
  // Mass and Infiltrate of i0, Mass of i1, i2, i3.
  std::vector<MapScore> scores = {scored(true, 0), scored(true, 0),
                                  scored(false, 0), scored(true, 0),
                                  scored(true, 0)};
  // Images and findings in another order than the manifest's; i3 is damaged.
  Predictions predictions;
  predictions.findings = {"Infiltration", "Mass"};
  predictions.images = {"i3", "i2", "i1", "i0"};
  predictions.probabilities = {NAN, NAN, 0.9, 0.2, 0.9, 0.7, 0.4, 0.3};
  DecisionRules rules;
  for (const auto& [finding, threshold] :
       {std::pair{"Mass", 0.3}, std::pair{"Infiltration", 0.5}}) {
    FindingRules& own = rules.findings.emplace_back();
    own.finding = finding;
    own.points = {{"sensitivity 0.9", 0.0}, {"youden", threshold}};
  }
  mark_called(scores, asked, manifest, predictions, rules);
  std::vector<bool> called;
  for (const auto& score : scores) called.push_back(score.called);
  CHECK(called == std::vector<bool>{true, false, true, false, false});

  const Localization found =
      localization_of(std::move(asked), scores, manifest, {.resamples = 200});
  const FindingLocalization &mass = found.findings[0],
                            &infiltration = found.findings[1];
  CHECK((mass.called == 2 && mass.few_called()));
  CHECK(mass.pointing_of_called.value == Approx(0.5));
  CHECK(mass.pointing.value == Approx(0.75));
  CHECK(infiltration.called == 0);
  CHECK_FALSE(infiltration.pointing_of_called.value);
  // Over the findings that have such a case.
  CHECK(found.mean_pointing_of_called.value == Approx(0.5));
  CHECK(found.in_mean().findings == 2);
  CHECK(found.in_mean_of_called().findings == 1);
  CHECK(found.in_mean_of_called().few == 1);
}
