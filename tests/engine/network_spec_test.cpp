#include "chexnet/engine/network_spec.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("the smallest input leaves one pixel after all halvings") {
  const auto last_map = [](int side) {
    side = (side + 1) / 2;                           // 7x7 convolution, padded
    side = (side + 1) / 2;                           // 3x3 pool, padded
    for (int pool = 0; pool < 3; ++pool) side /= 2;  // 2x2, not padded
    return side;
  };
  for (const char* arch : {"densenet121", "densenet169", "densenet201"}) {
    const int smallest = smallest_input(network_spec(arch));
    CHECK(last_map(smallest) == 1);
    CHECK(last_map(smallest - 1) == 0);
  }
  CHECK(smallest_input(network_spec("resnet50")) == 1);
}
