#include "chexnet/train/run/diagnosis.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("the limit follows the tests of the articles") {
  struct Case {
    StageRates rates;
    Limit limit;
    int workers;
  };
  const std::vector<Case> cases = {
      // The loader is slower than the network; without preprocessing it is
      // hardly faster: disk.
      {{.whole = 95,
        .read = 120,
        .load = 100,
        .load_one = 50,
        .same_batch = 400},
       Limit::kDisk,
       9},
      // … and much faster: decode.
      {{.whole = 95,
        .read = 5000,
        .load = 100,
        .load_one = 50,
        .same_batch = 400},
       Limit::kDecode,
       9},
      {{.whole = 300,
        .read = 5000,
        .load = 1000,
        .load_one = 500,
        .same_batch = 310,
        .no_copy = 420},
       Limit::kCopy,
       1},
      {{.whole = 250,
        .read = 5000,
        .load = 1000,
        .load_one = 500,
        .same_batch = 255,
        .no_copy = 260,
        .alone = 400},
       Limit::kCommunication,
       1},
      {{.whole = 390,
        .read = 5000,
        .load = 1000,
        .load_one = 500,
        .same_batch = 400,
        .no_copy = 405,
        .alone = 410},
       Limit::kCompute,
       1},
      {{.whole = 7,
        .read = 5000,
        .load = 600,
        .load_one = 600,
        .same_batch = 7.2,
        .shared_cores = true},
       Limit::kCompute,
       1},
  };
  for (const auto& c : cases) {
    const LimitReport report = limit_of(c.rates);
    INFO(report.reason);
    CHECK(std::string(limit_name(report.limit)) == limit_name(c.limit));
    CHECK(report.workers == c.workers);
    CHECK_FALSE(report.advice.empty());
  }
}

TEST_CASE("a limit by other ranks names no network: they may share a host") {
  CHECK(limit_name(Limit::kCommunication) == std::string("communication"));
}

TEST_CASE("a finished run is diagnosed by what it waited for") {
  CHECK(limit_of(WaitShares{0.4, 0.05, 90, 100}).limit == Limit::kDecode);
  CHECK(limit_of(WaitShares{0.05, 0.3, 1, 100}).limit == Limit::kCommunication);
  CHECK(limit_of(WaitShares{0.2, 0.3, 1, 100}).limit == Limit::kCommunication);
  CHECK(limit_of(WaitShares{0.01, 0.02, 0, 100}).limit == Limit::kCompute);
}
