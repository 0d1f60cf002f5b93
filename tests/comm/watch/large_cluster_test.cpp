// A thousand hosts in memory: reporters and observers as in a run, over a
// network whose lines come late, out of order or not at all. By default little
// time is simulated; with CHEXNET_LONG=1 CHEXNET_SIMULATED_S seconds as a whole
// and CHEXNET_HOST_HOURS hours where a host is silent. CHEXNET_STORM_SEED
// chooses other faults, and with $CHEXNET_FIGURES each test writes a line of
// JSON.
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bad_network.hpp"
#include "episodes.hpp"
#include "simulated_cluster.hpp"
#include "support/catch.hpp"
#include "support/long_tests.hpp"

using namespace chexnet;

namespace {

// The number in a variable, where somebody wants long tests.
double asked(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return is_long() && text != nullptr ? std::atof(text) : otherwise;
}

}  // namespace

TEST_CASE("a thousand hosts with a bad network are left alone",
          "[arithmetic]") {
  constexpr int kHosts = 1024;
  const Weather mild{
      .slow_delay_s = 1, .outage_every_s = 60, .longest_outage_s = 2};
  double simulated_s = 20, silence_s = 5;
  Weather weather = mild;
  uint64_t seed = 1;
  if (is_long()) {
    seed = static_cast<uint64_t>(asked("CHEXNET_STORM_SEED", 1));
    simulated_s = asked("CHEXNET_SIMULATED_S", 3600);
    silence_s = 60;
    // Many outages, as they cause silence, and short ones: a line needs both of
    // its hosts, whose outages may follow each other.
    weather = {.outage_every_s = 60, .longest_outage_s = 5};
  }
  const Forecast forecast(weather, kHosts, simulated_s, seed);
  SimulatedCluster cluster(forecast, all_hosts(kHosts), silence_s);
  cluster.run_for(simulated_s);
  CHECK(cluster.folder.sentences == std::vector<std::string>());
  CHECK(cluster.folder.log == std::vector<std::string>());
  CHECK(cluster.ended() == 0);
  // All kinds were tried.
  CHECK(cluster.network.lost > cluster.network.sent / 20);
  CHECK(cluster.network.delivered > cluster.network.sent / 2);
  write_figures(
      {{"test", "left alone"},
       {"hosts", kHosts},
       {"seed", seed},
       {"simulated_s", simulated_s},
       {"outages", forecast.outages_until(simulated_s)},
       {"silence_s", silence_s},
       {"overtaken", cluster.network.overtaken},
       {"sent", cluster.network.sent},
       {"sent_per_s", static_cast<double>(cluster.network.sent) / simulated_s},
       {"delivered", cluster.network.delivered},
       {"lost", cluster.network.lost},
       {"false_verdicts", cluster.folder.sentences.size()},
       {"hosts_that_ended_themselves", cluster.ended()}});
}

TEST_CASE("hosts that end are no failure, though lines overtake a goodbye") {
  // Nothing is lost: a goodbye is said once.
  const Weather late{.slow_share = 0.2,
                     .slow_delay_s = 1,
                     .lost_share = 0,
                     .outage_every_s = 1e9};
  const Forecast forecast(late, 200, 20, 3);
  SimulatedCluster cluster(forecast, all_hosts(200), 5);
  cluster.run_for(2);
  cluster.end_all_but_observers();
  cluster.run_for(9);
  CHECK(cluster.folder.sentences.empty());
  CHECK(cluster.ended() == 0);
  CHECK(cluster.network.overtaken > 0);
}

TEST_CASE("a dead host among a thousand is named, and it alone",
          "[arithmetic]") {
  constexpr int kHosts = 1024;
  constexpr double kSilence_s = 5;
  // What the others report must come within that silence.
  const Weather weather{.slow_delay_s = 1, .longest_outage_s = 2};
  const int deaths = is_long() ? 20 : 1;
  std::mt19937_64 random(2);
  std::vector<double> seconds;
  for (int i = 0; i < deaths; ++i) {
    const Forecast forecast(weather, kHosts, 60,
                            100 + static_cast<uint64_t>(i));
    SimulatedCluster cluster(forecast, all_hosts(kHosts), kSilence_s);
    // Between two reports.
    cluster.run_for(2 + std::uniform_real_distribution<>(0, 1)(random));
    const int victim = std::uniform_int_distribution<>(0, kHosts - 1)(random);
    CAPTURE(i, victim);
    cluster.kill(victim);
    const double died_s = cluster.now;
    const auto verdict = cluster.run_until_explained(died_s + 30);
    REQUIRE(verdict);
    seconds.push_back(verdict->at_s - died_s);
    REQUIRE(cluster.folder.sentences.size() == 1);
    CHECK(cluster.folder.causes.front() == "cut off");
    CHECK(cluster.folder.sentences.front().find(
              "Host node" + std::to_string(victim) + " (rank " +
              std::to_string(victim) + ") has not been heard") == 0);
    // A report that was under way may have come after its death.
    CHECK(seconds.back() > kSilence_s - Reporter::kReportEvery_s - 2);
    CHECK(seconds.back() <
          kSilence_s + weather.slow_delay_s + kSecondObserverAfter_s + 1);
    // Also the hosts that the end code did not reach end: they are cut off.
    cluster.run_for(kSilence_s + weather.longest_outage_s + 2);
    CHECK(cluster.ended() == kHosts - 1);
  }
  write_figures({{"test", "dead host"},
                 {"hosts", kHosts},
                 {"silence_s", kSilence_s},
                 {"seconds_to_verdict", seconds}});
}

TEST_CASE("what is left out of a simulation changes nothing", "[arithmetic]") {
  constexpr int kHosts = 12;
  constexpr double kSilence_s = 5, kUnplayed_s = 1.5, kEnd_s = 150;
  const Weather rough{
      .slow_delay_s = 1, .outage_every_s = 20, .longest_outage_s = 3.4};
  int ended = 0, went_on = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Forecast forecast(rough, kHosts, kEnd_s, seed);
    SimulatedCluster whole(forecast, all_hosts(kHosts), kSilence_s);
    const auto verdict = whole.run_until_explained(kEnd_s);
    const auto parts =
        play_episodes(forecast, kHosts, kSilence_s, kUnplayed_s, kEnd_s);
    REQUIRE(parts.verdict.has_value() == verdict.has_value());
    CHECK(parts.longest_silence_s == whole.longest_silence_s);
    CHECK(parts.played_host_s < 0.9 * kHosts * kEnd_s);
    ++(verdict ? ended : went_on);
    if (!verdict) continue;
    CHECK(parts.verdict->at_s == verdict->at_s);
    CHECK(parts.verdict->hosts == verdict->hosts);
    CHECK(parts.verdict->silent_s == verdict->silent_s);
  }
  CHECK(ended > 0);
  CHECK(went_on > 0);
}

TEST_CASE("who is called dead in hours of a thousand hosts was silent",
          "[arithmetic]") {
  constexpr int kHosts = 1024;
  constexpr double kSilence_s = 60, kUnplayed_s = 30, kRun_s = 3600;
  // It takes three that follow each other to be silent for so long.
  const Weather weather{.outage_every_s = 600, .longest_outage_s = 24};
  const double host_hours = asked("CHEXNET_HOST_HOURS", 1000);
  auto seed = static_cast<uint64_t>(asked("CHEXNET_STORM_SEED", 1));
  PlayedEpisodes sum;
  uint64_t outages = 0, runs = 0, verdicts = 0, false_verdicts = 0;
  for (; sum.simulated_s * kHosts < host_hours * 3600; ++runs, ++seed) {
    const Forecast forecast(weather, kHosts, kRun_s, seed);
    const double end_s =
        std::min(kRun_s, host_hours * 3600 / kHosts - sum.simulated_s + 1);
    const auto run =
        play_episodes(forecast, kHosts, kSilence_s, kUnplayed_s, end_s);
    CAPTURE(seed);
    // The second observer leaves the first some time.
    CHECK(run.longest_silence_s < kSilence_s + kSecondObserverAfter_s + 1);
    const bool is_ended = run.simulated_s < end_s;
    verdicts += is_ended ? 1 : 0;
    const bool is_true =
        !is_ended || (run.verdict && !run.verdict->hosts.empty() &&
                      run.verdict->silent_s >= kSilence_s);
    CHECK(is_true);
    false_verdicts += is_true ? 0 : 1;
    outages += forecast.outages_until(run.simulated_s);
    sum.simulated_s += run.simulated_s;
    sum.longest_silence_s =
        std::max(sum.longest_silence_s, run.longest_silence_s);
    sum.episodes += run.episodes;
    sum.sent += run.sent;
    sum.played_host_s += run.played_host_s;
  }
  CHECK(sum.episodes > 0);
  write_figures({{"test", "hours of a thousand hosts"},
                 {"hosts", kHosts},
                 {"runs", runs},
                 {"host_hours", sum.simulated_s * kHosts / 3600},
                 {"played_host_hours", sum.played_host_s / 3600},
                 {"episodes", sum.episodes},
                 {"outages", outages},
                 {"sent", sum.sent},
                 {"longest_silence_s", sum.longest_silence_s},
                 {"silence_s", kSilence_s},
                 {"verdicts", verdicts},
                 {"false_verdicts", false_verdicts}});
}
