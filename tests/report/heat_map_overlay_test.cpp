#include "chexnet/report/heat_map_overlay.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
  std::array<int, 3> at(int x, int y) const {
    const uint8_t* p = &pixels[static_cast<size_t>(3 * (y * width + x))];
    return {p[0], p[1], p[2]};
  }
};

// By libpng.
Picture read(const std::vector<std::byte>& png) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, png.data(), png.size()));
  image.format = PNG_FORMAT_RGB;
  Picture picture{static_cast<int>(image.width), static_cast<int>(image.height),
                  std::vector<uint8_t>(PNG_IMAGE_SIZE(image))};
  REQUIRE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0,
                                nullptr));
  return picture;
}

GrayImage gray(int width, int height, uint8_t value) {
  const std::vector<uint8_t> pixels(static_cast<size_t>(width * height), value);
  GrayImage image;
  image.assign(pixels.data(), width, height);
  return image;
}

constexpr Box kMiddle{0.1, 0.1, 0.9, 0.9};

}  // namespace

TEST_CASE("an overlay keeps the picture's size and adds its legend below") {
  const GrayImage picture = gray(300, 200, 100);
  const HeatMap map{2, 2, {-1, -1, -1, 4}, kMiddle, kMiddle};
  const Picture page =
      read(overlay_png(picture, map, {.caption = "Mass 0.83"}));
  CHECK(page.width == 300);
  CHECK(page.height > 200);
  CHECK(page.height < 300);
  const std::array<int, 3> plain = {100, 100, 100};
  CHECK(page.at(10, 10) == plain);    // outside of what the network saw
  CHECK(page.at(290, 190) == plain);  // also beside the hot corner
  CHECK(page.at(60, 60) == plain);    // the map is below 0
  // Viridis ends at (253, 231, 37); 65 % of it cover the picture.
  const auto hot = page.at(268, 178);
  CHECK(hot[0] == Approx(0.35 * 100 + 0.65 * 253).margin(2));
  CHECK(hot[1] == Approx(0.35 * 100 + 0.65 * 231).margin(2));
  CHECK(hot[2] == Approx(0.35 * 100 + 0.65 * 37).margin(2));
  // Between the two it gets ever brighter.
  const auto brightness = [&](int x, int y) {
    const auto [r, g, b] = page.at(x, y);
    return 0.299 * r + 0.587 * g + 0.114 * b;
  };
  CHECK(brightness(170, 117) < brightness(190, 130));
  CHECK(brightness(190, 130) < brightness(268, 178));
}

TEST_CASE("captions differ in the legend alone") {
  const GrayImage picture = gray(300, 200, 100);
  const HeatMap map{2, 2, {-1, -1, -1, 4}, kMiddle, kMiddle};
  const Picture a = read(overlay_png(picture, map, {.caption = "Mass"})),
                b = read(
                    overlay_png(picture, map, {.caption = "Ed\xc3\xa9ma"}));
  REQUIRE(a.pixels.size() == b.pixels.size());
  const auto legend = static_cast<ptrdiff_t>(3 * 300 * 200);
  CHECK(std::equal(a.pixels.begin(), a.pixels.begin() + legend,
                   b.pixels.begin()));
  CHECK(a.pixels != b.pixels);
}

TEST_CASE("where nothing raises the score the picture is left as it is") {
  const GrayImage picture = gray(64, 64, 77);
  const Picture page =
      read(overlay_png(picture, {1, 1, {-2}, {}, {}}, {.caption = "Mass"}));
  const std::array<int, 3> plain = {77, 77, 77};
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x) REQUIRE(page.at(x, y) == plain);
}

TEST_CASE("what is written with its legend is within the sides asked for") {
  const HeatMap map{2, 2, {0, 1, 2, 3}, {}, {}};
  const auto longer_side = [&](int width, int height, int most) {
    const GrayImage picture = gray(width, height, 50);
    const Picture page = read(overlay_png(
        picture, map,
        {.caption = "Mass", .most_width = width_within(most, picture)}));
    return std::max(page.width, page.height);
  };
  for (const int most : {kLeastOverlaySide, 300, 1024})
    for (const auto& [width, height] :
         {std::pair(1200, 1200), {1200, 1100}, {1100, 1200}, {2500, 300}}) {
      INFO(width << " x " << height << " within " << most);
      const int side = longer_side(width, height, most);
      CHECK(side <= most);
      CHECK(side >= most - 2);
    }
  CHECK(longer_side(300, 200, 1024) == 300);  // is not enlarged
  CHECK(width_within(0, gray(300, 200, 50)) == 0);
}

TEST_CASE("a picture is shrunk to the most width, and never enlarged") {
  const HeatMap map{2, 2, {0, 1, 2, 3}, {}, {}};
  const auto width = [&](int side) {
    return read(overlay_png(gray(side, 2 * side, 50), map,
                            {.caption = "Mass", .most_width = 120}))
        .width;
  };
  CHECK(width(500) == 120);
  CHECK(width(120) == 120);
  CHECK(width(60) == 60);
  CHECK(width(1) == 1);
}
