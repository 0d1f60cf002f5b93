#include "chexnet/data/augment.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

const Augmentation kEverything{.crop = TrainCrop::kRandom,
                               .flip = true,
                               .crop_area_min = 0.8,
                               .rotate_deg = 5,
                               .zoom = 0.1,
                               .contrast = 0.2};

// Each pixel another value: 10 y + x.
std::vector<uint8_t> numbered(int side) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      pixels.push_back(static_cast<uint8_t>(10 * y + x));
  return pixels;
}

std::vector<uint8_t> augmented(const std::vector<uint8_t>& square, int side,
                               const DrawnAugmentation& drawn, int crop) {
  std::vector<uint8_t> into(static_cast<size_t>(crop * crop)), scratch;
  augment({square.data(), side}, drawn, crop, into.data(), scratch);
  return into;
}

}  // namespace

TEST_CASE(
    "a draw is a function of seed and position, within what the config "
    "allows") {
  int flips = 0;
  for (uint64_t position = 0; position < 200; ++position) {
    const DrawnAugmentation d = draw_augmentation(kEverything, 7, position);
    const DrawnAugmentation again = draw_augmentation(kEverything, 7, position);
    const DrawnAugmentation other = draw_augmentation(kEverything, 8, position);
    CHECK((d.at_x == again.at_x && d.degrees == again.degrees &&
           d.contrast == again.contrast));
    CHECK(d.at_x != other.at_x);
    CHECK((d.area >= 0.8 && d.area <= 1));
    CHECK((d.at_x >= 0 && d.at_x < 1 && d.at_y >= 0 && d.at_y < 1));
    CHECK((d.degrees >= -5 && d.degrees <= 5));
    CHECK((d.zoom >= 0.9 && d.zoom <= 1.1));
    CHECK((d.contrast >= 0.8 && d.contrast <= 1.2));
    flips += d.flip ? 1 : 0;
  }
  CHECK((flips > 60 && flips < 140));
}

TEST_CASE("switching one change off leaves the others as they were drawn") {
  const DrawnAugmentation all = draw_augmentation(kEverything, 3, 11);
  Augmentation fewer = kEverything;
  fewer.flip = false;
  fewer.rotate_deg = 0;
  const DrawnAugmentation some = draw_augmentation(fewer, 3, 11);
  CHECK(some.degrees == 0);
  CHECK_FALSE(some.flip);
  CHECK(some.at_x == all.at_x);
  CHECK(some.zoom == all.zoom);
  CHECK(some.contrast == all.contrast);
}

TEST_CASE("nothing drawn changes nothing but the crop in the center") {
  const auto square = numbered(9);
  CHECK(augmented(square, 9, DrawnAugmentation(), 9) == square);
  // torchvision's center crop of 9 to 5 begins at 2.
  const auto center = augmented(square, 9, DrawnAugmentation(), 5);
  CHECK(center.front() == 22);
  CHECK(center.back() == 66);
}

TEST_CASE(
    "a random crop begins anywhere from the first to the last place, and "
    "nowhere else") {
  const auto square = numbered(9);
  struct Case {
    double at_x, at_y;
    int first;  // pixel, 10 y + x
  };
  for (const auto& [at_x, at_y, first] :
       {Case{0, 0, 0}, Case{0.999, 0, 4}, Case{0, 0.999, 40},
        Case{0.999, 0.999, 44}, Case{0.5, 0.3, 12}, Case{0.2, 0.19, 1},
        Case{0.199, 0.2, 10}}) {
    DrawnAugmentation drawn;
    drawn.crop = TrainCrop::kRandom;
    drawn.at_x = at_x;
    drawn.at_y = at_y;
    const auto cut = augmented(square, 9, drawn, 5);
    INFO(at_x << " " << at_y);
    CHECK(static_cast<int>(cut.front()) == first);
    CHECK(static_cast<int>(cut.back()) == first + 44);
  }
}

TEST_CASE("a flip mirrors each row of the crop") {
  const auto square = numbered(9);
  DrawnAugmentation drawn;
  const auto plain = augmented(square, 9, drawn, 5);
  drawn.flip = true;
  auto flipped = augmented(square, 9, drawn, 5);
  for (auto row = flipped.begin(); row != flipped.end(); row += 5)
    std::reverse(row, row + 5);
  CHECK(flipped == plain);
}

TEST_CASE(
    "contrast moves away from the mean, keeps it, and stays within bytes") {
  const std::vector<uint8_t> square = {100, 100, 140, 140};  // mean 120
  DrawnAugmentation drawn;
  drawn.contrast = 1.5;
  CHECK(augmented(square, 2, drawn, 2) ==
        std::vector<uint8_t>{90, 90, 150, 150});
  drawn.contrast = 0.5;
  CHECK(augmented(square, 2, drawn, 2) ==
        std::vector<uint8_t>{110, 110, 130, 130});
  drawn.contrast = 20;
  CHECK(augmented(square, 2, drawn, 2) == std::vector<uint8_t>{0, 0, 255, 255});
}

TEST_CASE(
    "a quarter turn moves each pixel to its place, and the border is no black "
    "wedge") {
  const auto square = numbered(5);
  DrawnAugmentation drawn;
  drawn.degrees = 90;  // against the clock
  const auto turned = augmented(square, 5, drawn, 5);
  CHECK(static_cast<int>(turned[0]) == 4);    // the upper right corner
  CHECK(static_cast<int>(turned[4]) == 44);   // the lower right one
  CHECK(static_cast<int>(turned[12]) == 22);  // the center stays
  const std::vector<uint8_t> bright(25, 200);
  drawn.degrees = 33;
  drawn.zoom = 0.7;
  CHECK(augmented(bright, 5, drawn, 5) == bright);
}

TEST_CASE(
    "a random resized crop keeps its share of the area inside the picture") {
  DrawnAugmentation drawn;
  CHECK(drawn_region(drawn, 70, 40).width == 70);
  drawn.crop = TrainCrop::kResized;
  drawn.area = 0.25;
  drawn.at_x = drawn.at_y = 0.9999;
  const Region last = drawn_region(drawn, 70, 40);
  CHECK((last.width == 35 && last.height == 20));
  CHECK((last.x == 35 && last.y == 20));  // it ends where the picture ends
  drawn.at_x = drawn.at_y = 0;
  const Region first = drawn_region(drawn, 70, 40);
  CHECK((first.x == 0 && first.y == 0));
  drawn.area = 1e-9;
  CHECK(drawn_region(drawn, 70, 40).width == 1);
}
