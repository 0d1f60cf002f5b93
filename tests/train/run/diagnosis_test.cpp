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
      // … whose images come over a network.
      {{.whole = 95,
        .read = 120,
        .load = 100,
        .load_one = 50,
        .same_batch = 400,
        .over_network = true},
       Limit::kNetwork,
       9},
      // Nothing augmented, it would be fast: augmentation.
      {{.whole = 95,
        .read = 5000,
        .load = 100,
        .load_plain = 140,
        .load_one = 50,
        .same_batch = 400},
       Limit::kAugmentation,
       9},
      {{.whole = 95,
        .read = 5000,
        .load = 100,
        .load_plain = 120,
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

TEST_CASE("without a worker loading limits a run that it hardly slows") {
  StageRates rates = {.whole = 121,
                      .read = 5000,
                      .load = 435,
                      .load_one = 435,
                      .same_batch = 167};
  CHECK(limit_of(rates).limit == Limit::kCompute);
  rates.workers = 0;
  CHECK(limit_of(rates).limit == Limit::kDecode);
  CHECK(limit_of(rates).advice.front().starts_with("data.workers: 1"));
}

TEST_CASE("a difference within the noise limits nothing") {
  StageRates rates = {.whole = 290,
                      .read = 5000,
                      .load = 1000,
                      .load_one = 500,
                      .same_batch = 300,
                      .no_copy = 350,
                      .alone = 400};
  CHECK(limit_of(rates).limit == Limit::kCopy);
  StageRates hidden = rates;
  hidden.whole = 340;
  hidden.alone = 0;
  CHECK(limit_of(hidden).limit == Limit::kCompute);
  rates.noise = 0.25;
  CHECK(limit_of(rates).limit == Limit::kCompute);
  rates.alone = 450;
  CHECK(limit_of(rates).limit == Limit::kCommunication);
  rates.noise = 5;
  rates.alone = 3500;
  CHECK(limit_of(rates).limit == Limit::kCommunication);
}

TEST_CASE("ranks that share a host's cores are told to be fewer") {
  StageRates rates = {.whole = 95,
                      .read = 5000,
                      .load = 1000,
                      .load_one = 500,
                      .same_batch = 100,
                      .alone = 200,
                      .shared_cores = true};
  const auto advice = [&] { return limit_of(rates).advice.front(); };
  CHECK(advice().find("launch.bucket_mb") != std::string::npos);
  rates.one_host = true;
  CHECK(advice().find("fewer of them") != std::string::npos);
}

TEST_CASE("a finished run is diagnosed by what it waited for") {
  CHECK(limit_of(WaitFractions{0.4, 0.05, 90, 100}).limit == Limit::kData);
  CHECK(limit_of(WaitFractions{0.05, 0.3, 1, 100}).limit ==
        Limit::kCommunication);
  CHECK(limit_of(WaitFractions{0.2, 0.3, 1, 100}).limit ==
        Limit::kCommunication);
  CHECK(limit_of(WaitFractions{0.01, 0.02, 0, 100}).limit == Limit::kCompute);
}

TEST_CASE("figures that contradict each other lead to no conclusion") {
  const StageRates sound = {.whole = 95,
                            .read = 5000,
                            .load = 100,
                            .load_one = 50,
                            .same_batch = 400,
                            .workers = 2};
  CHECK(limit_of(sound).limit == Limit::kDecode);
  const auto unknown = [&](auto&& change) {
    StageRates rates = sound;
    change(rates);
    const LimitReport report = limit_of(rates);
    CHECK(limit_name(report.limit) == std::string("unknown"));
    CHECK(report.workers == 0);
    return report.reason;
  };
  CHECK(unknown([](StageRates& r) { r.whole = 200; }) ==
        "the run reaches 200 images/s, and loading alone, a part of it, only "
        "100 images/s: these figures contradict each other");
  unknown([](StageRates& r) { r.read = 60; });
  unknown([](StageRates& r) { r.load = r.whole = 1000; });
  unknown([](StageRates& r) { r.whole = 39; });  // 80 one after the other
  unknown([](StageRates& r) { r.no_copy = 200; });
  unknown([](StageRates& r) { r.alone = 200; });
}

TEST_CASE("advice follows from the figures") {
  const StageRates rates = {.whole = 95,
                            .read = 5000,
                            .load = 100,
                            .load_one = 50,
                            .same_batch = 400,
                            .workers = 2};
  const auto first = [](const LimitReport& report) {
    return report.advice.front();
  };
  CHECK(
      first(limit_of(rates)).starts_with("data.workers: 9, each with a core"));
  StageRates many = rates;
  many.workers = 16;
  CHECK(
      first(limit_of(many)).starts_with("chexnet-train pack --format pixels"));
  CHECK(first(limit_of(many)).ends_with("reading alone gives 5000 images/s"));
  const WaitFractions even = {0.05, 0.3, 1, 100};
  WaitFractions slow = even;
  slow.slowest_rank = 3;
  slow.slowest_ratio = 1.5;
  CHECK(first(limit_of(even)).starts_with("up to 30 % of the time is to gain"));
  CHECK(first(limit_of(slow)).starts_with("rank 3 takes 1.50 x"));
  CHECK(first(limit_of(WaitFractions{0.01, 0.02, 0, 100}))
            .starts_with("at most 3 % of the time is to gain"));
  CHECK(first(limit_of(WaitFractions{0.001, 0, 0, 100}))
            .ends_with("less than 1 % of the time"));
}
