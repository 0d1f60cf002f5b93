#include "chexnet/watch/start_deadline.hpp"

#include <semaphore>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a start that takes too long is told, once") {
  int told = 0;
  std::binary_semaphore late(0);
  {
    const StartDeadline deadline(0.1, [&] {
      ++told;
      late.release();
    });
    late.acquire();
  }
  CHECK(told == 1);
}

TEST_CASE("a start that ends in time is not told") {
  bool told = false;
  {
    const StartDeadline deadline(3600, [&] { told = true; });
  }
  CHECK_FALSE(told);
}
