#include "chexnet/launch/timeouts.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE(
    "a pause of more than two seconds between two looks was a suspension") {
  SuspensionMeter meter(100);
  CHECK(meter.look(100.5) == 0);
  CHECK(meter.look(102.5) == 0);
  CHECK(meter.look(104.6) == Approx(2.1));
  CHECK(meter.look(104.7) == 0);
  CHECK(meter.look(3704.7) == Approx(3600));
}

TEST_CASE(
    "a collective's deadline comes a second after the timeout, and counts no "
    "suspension") {
  CollectiveDeadline deadline(10, 0);
  double waited = 0;
  for (double now = 0; now < 10.9; now += 0.5) waited = deadline.waited_s(now);
  CHECK(waited == Approx(10.5));
  CHECK_FALSE(deadline.is_over(waited));
  CHECK(deadline.is_over(deadline.waited_s(11.6)));

  CollectiveDeadline suspended(10, 0);
  for (double now = 0; now < 5.1; now += 0.5) waited = suspended.waited_s(now);
  CHECK(suspended.waited_s(3605) == Approx(5));
  CHECK(suspended.waited_s(3606) == Approx(6));
  CHECK(kWatchdogAfter_s + kSecondObserverAfter_s < kCommunicatorAfter_s);
  CHECK(kWatchdogAfter_s < kBlockedCallAfter_s);
  CHECK(kBlockedCallAfter_s < kCommunicatorAfter_s);
}
