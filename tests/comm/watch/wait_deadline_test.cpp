#include "chexnet/comm/watch/wait_deadline.hpp"

#include <semaphore>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a wait that takes too long is told, once") {
  int told = 0;
  std::binary_semaphore late(0);
  {
    WaitDeadline deadline(0.1, [&] {
      ++told;
      late.release();
    });
    const auto wait = deadline.wait();
    late.acquire();
  }
  CHECK(told == 1);
}

TEST_CASE("waits that end in time are not told, nor what is between them") {
  using std::chrono::milliseconds;
  bool told = false;
  {
    WaitDeadline deadline(3600, [&] { told = true; });
    const auto wait = deadline.wait();
  }
  {
    // Together longer than the limit, which counts for each by itself.
    WaitDeadline deadline(2, [&] { told = true; });
    for (int k = 0; k < 20; ++k) {
      const auto wait = deadline.wait();
      std::this_thread::sleep_for(milliseconds(130));
    }
  }
  {
    WaitDeadline deadline(0.05, [&] { told = true; });
    std::this_thread::sleep_for(milliseconds(500));
  }
  CHECK_FALSE(told);
}
