#include "chexnet/comm/watch/straggler.hpp"

#include <cmath>

#include "chexnet/core/philox.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

constexpr int kSteps = 10;  // of a window

// The median step of a window on a machine whose steps vary by `jitter`, with a
// pause of half a step in one of twenty.
double window_median(Random& random, double step_s, double jitter) {
  std::vector<double> steps;
  for (int i = 0; i < kSteps; ++i)
    steps.push_back(step_s * (1 + jitter * (2 * random.uniform() - 1)) +
                    (random.chance(0.05) ? step_s / 2 : 0));
  std::ranges::sort(steps);
  return steps[kSteps / 2];
}

}  // namespace

TEST_CASE("one slow rank is named within 50 steps, with its cause") {
  for (const int ranks : {2, 4, 64}) {
    StragglerWatch watch({});
    Random random(1, Purpose::kTest, static_cast<uint64_t>(ranks));
    std::vector<StragglerWatch::Alarm> alarms;
    int steps = 0;
    for (; alarms.empty() && steps < 50; steps += kSteps) {
      std::vector<RankPace> paces(static_cast<size_t>(ranks));
      for (auto& pace : paces) pace.own_s = window_median(random, 0.1, 0.1);
      paces[1].own_s = window_median(random, 0.15, 0.1);
      alarms = watch.add(paces);
    }
    REQUIRE(alarms.size() == 1);
    CHECK(alarms[0].rank == 1);
    CHECK(alarms[0].ratio == Approx(1.5).epsilon(0.1));
    CHECK(alarms[0].cause.find("computes more slowly") != std::string::npos);
  }
}

TEST_CASE("no false alarm in 50,000 steps of ranks that vary") {
  StragglerWatch watch({});
  Random random(2, Purpose::kTest, 0);
  for (int window = 0; window < 50'000 / kSteps; ++window) {
    std::vector<RankPace> paces(4);
    for (auto& pace : paces) pace.own_s = window_median(random, 0.1, 0.2);
    CHECK(watch.add(paces).empty());
  }
}

TEST_CASE("causes of a slow rank, and one alarm until it recovers") {
  StragglerWatch::Options at_once;
  at_once.windows = 1;
  const auto cause = [&](RankPace slow) {
    StragglerWatch watch(at_once);
    RankPace normal;
    normal.own_s = 0.1;
    const auto alarms = watch.add({normal, slow, normal});
    return alarms.empty() ? std::string() : alarms[0].cause.substr(0, 13);
  };
  CHECK(cause({0.2, 0.09, 1, 0}) == "it waits for ");
  CHECK(cause({0.2, 0, 1, 1}) == "its GPU's clo");
  CHECK(cause({0.2, 0, 0.5, 0}) == "its threads g");
  CHECK(cause({0.12, 0, 1, 0}).empty());
  CHECK(cause({0.0009, 0, 1, 0}).empty());

  StragglerWatch watch({});
  const auto alarms_after = [&](const std::vector<double>& ratios) {
    size_t alarms = 0;
    for (const double ratio : ratios)
      alarms += watch.add({{0.1}, {0.1 * ratio}}).size();
    return alarms;
  };
  CHECK(alarms_after({1.5, 1.5, 1.5}) == 0);
  // One window in which the other was disturbed.
  CHECK(alarms_after({1.1}) == 1);
  CHECK(alarms_after({1.5, 1.6, 1.5, 1.5}) == 0);  // said once
  CHECK(alarms_after({1, 1, 1, 1}) == 0);          // recovered
  CHECK(alarms_after({1.3, 1.3, 1.3, 1.3}) == 0);
  CHECK(alarms_after({1, 1, 1, 3, 1, 1, 1}) == 0);  // a single disturbance
  CHECK(alarms_after({1.5, 1.5, 1.5, 1.5}) == 1);
}
