#include "chexnet/launch/machine/core_check.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {
std::string level_of(const CheckResult& result) {
  return level_name(result.level);
}
}  // namespace

TEST_CASE("ranks that share cores, and threads without a core, are warned of") {
  const auto own = check_cores({{0, {0, 1}, 2}, {1, {2, 3}, 2}});
  CHECK(level_of(own) == "PASS");
  CHECK(own.text == "2 ranks with 4 threads on 4 cores");
  CHECK(level_of(check_cores({{0, {0, 1}, 1}})) == "PASS");

  const auto overlap =
      check_cores({{0, {0, 1}, 1}, {1, {1, 2}, 1}, {2, {3, 4}, 2}});
  CHECK(level_of(overlap) == "WARN");
  CHECK(overlap.text ==
        "3 ranks with 4 threads on 5 cores: ranks 0, 1 run on the same ones");
  CHECK(overlap.advice.find("--ranks") != std::string::npos);

  const auto crowded = check_cores({{0, {0, 1}, 8}});
  CHECK(level_of(crowded) == "WARN");
  CHECK(crowded.text ==
        "1 rank with 8 threads on 2 cores: threads wait for each other");
  CHECK(crowded.advice.find("launch.threads") != std::string::npos);
}
