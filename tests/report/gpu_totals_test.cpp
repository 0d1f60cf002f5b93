#include "chexnet/report/gpu_totals.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

// Four GPUs; the one of rank 2 waits for data, that of rank 3 has no figures.
nlohmann::json event() {
  return nlohmann::json::parse(R"({"event": "gpus", "step": 40,
    "seconds": 100, "images": 6400, "throttle_reasons": "power cap",
    "flops_utilization": 0.31,
    "utilization": {"0": 92, "1": 94, "2": 60},
    "busy_fraction": {"0": 1, "1": 1, "2": 0.7},
    "full_fraction": {"0": 0.9, "1": 0.9, "2": 0.3},
    "memory_bytes": {"0": 1073741824, "1": 2147483648, "2": 1073741824},
    "power_w": {"0": 300, "1": 310, "2": 190},
    "energy_j": {"0": 30000, "1": 31000, "2": 19000},
    "clock_mhz": {"0": 1500, "1": 1500, "2": 1800},
    "throttled_fraction": {"0": 0, "1": 0.25, "2": 0},
    "idle_input": {"0": 2, "1": 1, "2": 33},
    "idle_host": {"0": 6, "1": 5, "2": 7},
    "idle_checkpoint": {"0": 0.1, "1": 0.1, "2": 0.1}})");
}

}  // namespace

TEST_CASE("a GPU that tells nothing leaves no sums, and is named") {
  const auto totals = gpu_totals(nlohmann::json::parse(R"({
    "seconds": 10, "images": 100, "ranks": 2, "utilization": {"0": 95},
    "busy_fraction": {"0": 1}, "power_w": {"0": 300}, "energy_j": {"0": 3000}})"));
  REQUIRE(totals);
  CHECK(totals->power_w == 0);
  CHECK_FALSE(totals->joules_per_image());
  CHECK(gpu_figures_text(*totals).starts_with(
      "95 % busy in the mean of 1 (1 other told nothing)"));
}

TEST_CASE("totals of GPUs: means, sums and the least of the ranks") {
  const auto totals = gpu_totals(event());
  REQUIRE(totals);
  CHECK(totals->gpus == 3);
  CHECK(totals->utilization == 82);
  CHECK(totals->least_rank == 2);
  CHECK(totals->least_utilization == 60);
  CHECK(totals->busy_fraction == Approx(0.9));
  CHECK(totals->memory_bytes == 2147483648);
  CHECK(totals->power_w == 800);
  CHECK(totals->energy_j == 80000);
  CHECK(totals->joules_per_image() == 12.5);
  CHECK(totals->clock_mhz == 1600);
  CHECK(totals->throttled_fraction == 0.25);
  CHECK(gpu_figures_text(*totals) ==
        "82 % busy in the mean (rank 2 least, 60 %), over 90 % in 70 % of the "
        "samples, at most 2.0 GiB each, 800 W, 1600 MHz, 12.50 J an image, "
        "31 % of the peak FLOP/s, throttled in 25 % of the samples of one "
        "(power cap)");
  CHECK(gpu_rule_text(*totals) ==
        "the rule (over 90 %, busy at least 80 % of the time) does not hold "
        "for rank 2, 60 % busy: of the 40 % idle, 33 for data, 7 for the host "
        "to launch work. Hint: `status RUN` says what reading lacks");
  const Json json = gpu_totals_json(totals);
  CHECK(json["by_rank"]["power_w"]["2"] == 190);
  CHECK(json["idle"]["input"] == 12);
  CHECK(json["idle"]["communication"] == 0);
  CHECK(json["keeps_rule"] == false);
}

TEST_CASE("of some GPUs alone no power and no energy are told") {
  nlohmann::json some = event();
  some["power_w"].erase("1");
  some["energy_j"].erase("1");
  const auto totals = gpu_totals(some);
  CHECK(totals->power_w == 0);
  CHECK_FALSE(totals->joules_per_image());
  CHECK(gpu_totals_json(totals)["power_w"].is_null());
}

TEST_CASE("the rule holds from 90 and 80 percent on") {
  nlohmann::json good = event();
  good["utilization"] = {{"0", 90}};
  good["busy_fraction"] = {{"0", 0.8}};
  CHECK(gpu_rule_text(*gpu_totals(good)).ends_with("holds"));
  good["busy_fraction"] = {{"0", 0.79}};
  CHECK_FALSE(gpu_totals(good)->keeps_rule());
  good["busy_fraction"] = {{"0", 0.8}};
  good["utilization"] = {{"0", 89.9}};
  CHECK_FALSE(gpu_totals(good)->keeps_rule());
}

TEST_CASE("the rule holds for each GPU or not at all") {
  nlohmann::json lazy = event();
  lazy["utilization"] = {{"0", 99}, {"1", 99}, {"2", 99}, {"3", 64}};
  lazy["busy_fraction"] = {{"0", 1}, {"1", 1}, {"2", 1}, {"3", 1}};
  const auto totals = gpu_totals(lazy);
  CHECK_FALSE(totals->keeps_rule());
  CHECK(gpu_rule_text(*totals).ends_with("for rank 3, 64 % busy"));
  lazy["idle_input"] = {{"0", 1}, {"3", 31}};
  lazy["idle_communication"] = {{"0", 1}, {"3", 5}};
  CHECK(gpu_rule_text(*gpu_totals(lazy))
            .find("does not hold for rank 3, 64 % busy: of the 36 % idle, 31 "
                  "for data, 5 for other ranks. Hint: ") != std::string::npos);
  lazy["utilization"]["3"] = 99;
  CHECK(gpu_totals(lazy)->keeps_rule());
  lazy["busy_fraction"]["2"] = 0.7;
  CHECK_FALSE(gpu_totals(lazy)->keeps_rule());
  CHECK(gpu_rule_text(*gpu_totals(lazy))
            .find("does not hold for rank 2, 99 % busy: of the 1 % idle") !=
        std::string::npos);
}

TEST_CASE(
    "without a utilization there are no totals, and no figure is made up") {
  CHECK_FALSE(gpu_totals(nlohmann::json::object()));
  CHECK_FALSE(gpu_totals({{"utilization", {{"0", 400}}}}));  // damaged
  CHECK(gpu_totals_json(std::nullopt).is_null());
  const auto bare = gpu_totals({{"utilization", {{"0", 50}}}});
  REQUIRE(bare);
  CHECK(gpu_figures_text(*bare) ==
        "50 % busy in the mean, over 90 % in 0 % of the samples");
  CHECK(gpu_rule_text(*bare).ends_with("does not hold"));
  CHECK(gpu_totals_json(bare)["energy_j"].is_null());
  CHECK(gpu_totals_json(bare)["flops_utilization"].is_null());
}
