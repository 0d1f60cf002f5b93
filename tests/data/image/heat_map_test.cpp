#include "chexnet/data/image/heat_map.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("boxes meet in their intersection") {
  const Box a{0, 0, 0.5, 0.5}, b{0.25, 0.25, 0.75, 0.75}, far{0.8, 0.8, 1, 1};
  CHECK(intersection(a, b) == Box{0.25, 0.25, 0.5, 0.5});
  CHECK(intersection(a, far).area() == 0);
  CHECK(intersection_over_union(a, b) == Approx(0.0625 / 0.4375));
  CHECK(intersection_over_union(a, a) == 1);
  CHECK(intersection_over_union(a, far) == 0);
  CHECK(intersection_over_union({1, 1, 1, 1}, {1, 1, 1, 1}) == 0);
}

TEST_CASE("a center crop lies where the reader cuts it") {
  CHECK(center_crop_place(256, 224) == Box{0.0625, 0.0625, 0.9375, 0.9375});
  CHECK(center_crop_place(224, 224) == Box{});
  // A slack of 3 pixels: 2 are cut off at the left and the top, 1 at the other
  // ends.
  CHECK(center_crop_place(35, 32) ==
        Box{2 / 35.0, 2 / 35.0, 34 / 35.0, 34 / 35.0});
}

// torch.nn.functional.interpolate([[0, 1], [2, 4]], mode="bilinear",
// align_corners=False) to 4 x 4.
TEST_CASE("maps are enlarged as PyTorch does") {
  const HeatMap map{2, 2, {0, 1, 2, 4}, {}, {}};
  const std::vector<float> expected = {
      0,    0.25f,   0.75f,   1,     0.5f, 0.8125f, 1.4375f, 1.75f,
      1.5f, 1.9375f, 2.8125f, 3.25f, 2,    2.5f,    3.5f,    4};
  CHECK(resized(map, 4, 4) == expected);
  CHECK(resized(map, 2, 2) == map.values);
  CHECK(resized({1, 1, {3}, {}, {}}, 3, 2) == std::vector<float>(6, 3.0f));
}

TEST_CASE("a map's peak is the center of its highest pixel, in the picture") {
  const HeatMap map{4,
                    2,
                    {0, 1, 9, 3, 2, 9, 1, 0},
                    {0.2, 0.2, 0.8, 0.8},
                    {0.2, 0.2, 0.8, 0.8}};
  const Peak peak = peak_of(map);
  CHECK(peak.x == Approx(0.2 + 0.6 * 2.5 / 4));
  CHECK(peak.y == Approx(0.2 + 0.6 * 0.5 / 2));
}

TEST_CASE("a map's pixels may reach beyond what the network saw") {
  // Pixels are centered at 0 and 0.5 of a picture that is seen whole.
  const HeatMap map{2, 1, {4, 8}, {}, {-0.25, 0, 0.75, 1}};
  CHECK(resized(map, 4, 1) == std::vector<float>{5, 7, 8, 8});
  CHECK(peak_of(map).x == Approx(0.5));
  const HeatMap beyond{1, 1, {1}, {0.1, 0.1, 0.9, 0.9}, {0.8, 0.1, 1.6, 0.9}};
  CHECK(peak_of(beyond).x == Approx(0.9));
}
