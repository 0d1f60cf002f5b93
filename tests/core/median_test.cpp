#include "chexnet/core/median.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE(
    "a median is a value that was measured, of an even number the upper one") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 3);
}

TEST_CASE("a quantile lies between its neighbors, the ends are the extremes") {
  CHECK(quantile({7}, 0.5) == 7);
  CHECK(quantile({4, 1, 3, 2}, 0) == 1);
  CHECK(quantile({4, 1, 3, 2}, 1) == 4);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2.5);
  CHECK(quantile({10, 20, 30, 40, 50}, 0.1) == Approx(14));
}
