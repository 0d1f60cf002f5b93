// Reporters and observers of whole clusters together, over a network and a
// clock in memory.
#include "fake_cluster.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

constexpr double kSilence_s = FakeCluster::kTimeout_s;
// The last report of a rank that stops may be so old.
constexpr double kSinceReport_s =
    Reporter::kReportEvery_s + FakeCluster::kHeartbeat_s;

const std::vector<std::vector<int>> kClusters = {
    {2}, {4}, {2, 2}, {1, 1, 1}, {3, 2, 2}};

}  // namespace

TEST_CASE("a run without trouble is left alone") {
  for (const auto& hosts : kClusters) {
    FakeCluster cluster(hosts);
    cluster.run_for(30);
    CHECK(cluster.folder.sentences.empty());
    CHECK(cluster.exit_codes().find_first_of("57") == std::string::npos);
  }
}

TEST_CASE("a dead rank is named at once, and every rank ends with 5") {
  FakeCluster cluster({2, 2});
  cluster.run_for(3);
  cluster.kill(3);
  CHECK(cluster.run_until_explained(60) < 1);
  cluster.run_for(1);
  REQUIRE(cluster.folder.sentences.size() == 1);
  CHECK(cluster.folder.sentences[0].find(
            "Rank 3 on b died (process 103) during backward") == 0);
  CHECK(cluster.folder.explained_by == 0);
  CHECK(cluster.exit_codes() == "5 5 5 -");
  CHECK(cluster.process(0).end.limited == 5);
}

TEST_CASE(
    "whichever rank is stopped, it is named within the timeout and a second") {
  for (const auto& hosts : kClusters) {
    int ranks = 0;
    for (const int n : hosts) ranks += n;
    for (int victim = 0; victim < ranks; ++victim) {
      CAPTURE(hosts.size(), ranks, victim);
      FakeCluster cluster(hosts);
      cluster.run_for(2);
      cluster.stop(victim);
      const double seconds = cluster.run_until_explained(60);
      CHECK(seconds > kSilence_s - kSinceReport_s);
      CHECK(seconds < kSilence_s + 1.2);
      REQUIRE(cluster.folder.sentences.size() == 1);
      const bool names_it =
          cluster.folder.sentences[0].find("ank " + std::to_string(victim)) !=
              std::string::npos ||
          cluster.folder.sentences[0].find("(rank " + std::to_string(victim)) !=
              std::string::npos;
      CHECK(names_it);
      cluster.run_for(2);
      CHECK(cluster.folder.sentences.size() == 1);
      for (int r = 0; r < ranks; ++r)
        if (r != victim) CHECK(cluster.process(r).end.exit_code.has_value());
    }
  }
}

TEST_CASE(
    "a rank that lets the others wait is named, and a network that passes no "
    "data") {
  FakeCluster cluster({2, 2});
  cluster.run_for(1);
  cluster.wait_in_all_reduce({0, 1, 2});
  const double seconds = cluster.run_until_explained(60);
  CHECK(seconds >= kSilence_s + kWatchdogAfter_s - 0.1);
  CHECK(seconds < kSilence_s + kWatchdogAfter_s + 0.5);
  CHECK(cluster.folder.causes == std::vector<std::string>{"stuck"});
  CHECK(cluster.folder.sentences[0].find(
            "Rank 3 on b has been in backward of step 40") == 0);
  cluster.run_for(1);
  CHECK(cluster.exit_codes() == "7 7 7 7");

  FakeCluster network({2, 2});
  network.wait_in_all_reduce({0, 1, 2, 3});
  network.run_until_explained(60);
  CHECK(network.folder.causes == std::vector<std::string>{"network"});
}

TEST_CASE(
    "a leader that dies or is stopped is replaced by the next rank of its "
    "host") {
  for (const bool dies : {false, true}) {
    CAPTURE(dies);
    FakeCluster cluster({2, 3});
    cluster.run_for(3);
    CHECK(cluster.process(2).reporter->leads());
    CHECK_FALSE(cluster.process(3).reporter->leads());
    if (dies)
      cluster.kill(2);
    else
      cluster.stop(2);
    cluster.now += Reporter::kLeaderSilence_s - 0.2;
    if (!dies) CHECK_FALSE(cluster.process(3).reporter->leads());
    cluster.now += 0.3;
    cluster.rank(3).heartbeat_s = cluster.rank(4).heartbeat_s = cluster.now;
    CHECK(cluster.process(3).reporter->leads());
    CHECK_FALSE(cluster.process(4).reporter->leads());

    // The new one reports of the old one, so that it is named and not the whole
    // host.
    cluster.run_until_explained(60);
    REQUIRE(cluster.folder.sentences.size() == 1);
    CHECK(cluster.folder.sentences[0].find(dies ? "Rank 2 on b died"
                                                : "Rank 2 on b stopped") == 0);
    cluster.run_for(1);
    CHECK(cluster.exit_codes() == (dies ? "5 5 - 5 5" : "7 7 - 7 7"));
  }
}

TEST_CASE("who takes over gives its observers time to answer") {
  FakeCluster cluster({1, 1, 2});
  cluster.run_for(3 * kSilence_s);  // rank 3 has heard nothing all the while
  cluster.rank(2).phase = Phase::kEnded;
  cluster.process(2).killed = true;
  cluster.network.delay_s = 0.5;
  cluster.run_for(10);
  CHECK(cluster.exit_codes() == "- - - -");
  CHECK(cluster.folder.log.empty());
}

TEST_CASE("a host that is cut off ends itself, and the others say so") {
  FakeCluster cluster({2, 2, 2});
  cluster.run_for(3);
  cluster.network.cut = {4, 5};
  cluster.run_until_explained(60);
  cluster.run_for(2);
  CHECK(cluster.folder.causes == std::vector<std::string>{"cut off"});
  CHECK(cluster.folder.sentences[0].find(
            "Host c (rank 4, 5) has not been heard for 5.") == 0);
  CHECK(cluster.exit_codes() == "5 5 5 5 5 5");
  CHECK(
      cluster.folder.log ==
      std::vector<std::string>{
          "[watchdog] c: no heartbeat from ranks 0 and 2 for 5 s: this host is "
          "cut off from them and ends its ranks"});
  CHECK(cluster.process(4).end.limited == 5);
}

TEST_CASE("a host that comes back in time is forgiven, any number of times") {
  FakeCluster cluster({2, 2});
  for (int i = 0; i < 5; ++i) {
    cluster.run_for(1);
    cluster.network.cut = {2, 3};
    cluster.run_for(kSilence_s - 1);
    cluster.network.cut.clear();
  }
  cluster.run_for(20);
  CHECK(cluster.folder.sentences.empty());
  CHECK(cluster.exit_codes() == "- - - -");
}

TEST_CASE("lost, late and doubled messages are no failure") {
  for (const double delay_s : {0.0, 0.7, 2.0})
    for (const int copies : {1, 3})
      for (const unsigned lost_percent : {0U, 20U, 40U}) {
        CAPTURE(delay_s, copies, lost_percent);
        FakeCluster cluster({2, 2, 1});
        cluster.network.delay_s = delay_s;
        cluster.network.copies = copies;
        cluster.network.lost_percent = lost_percent;
        cluster.run_for(30);
        CHECK(cluster.folder.sentences.empty());
        CHECK(cluster.exit_codes() == "- - - - -");
        // And a failure is still found, and told.
        cluster.stop(4);
        cluster.run_until_explained(60);
        CHECK(cluster.folder.sentences.size() == 1);
        cluster.run_for(2 * delay_s + 2);
        CHECK(cluster.exit_codes().substr(0, 7).find('-') == std::string::npos);
      }
}

TEST_CASE(
    "a job that was suspended as a whole goes on as if nothing had been") {
  for (const auto& hosts : kClusters) {
    FakeCluster cluster(hosts);
    cluster.run_for(3);
    cluster.now += 3600;
    cluster.run_for(20);
    CHECK(cluster.folder.sentences.empty());
    CHECK(cluster.exit_codes().find_first_of("57") == std::string::npos);
  }
  // A failure after it is found as ever.
  FakeCluster cluster({2, 2});
  cluster.run_for(3);
  cluster.now += 3600;
  cluster.run_for(1);
  cluster.stop(3);
  const double seconds = cluster.run_until_explained(60);
  CHECK(seconds > kSilence_s - kSinceReport_s);
  CHECK(seconds < kSilence_s + 1.2);
  CHECK(cluster.folder.sentences[0].find("Rank 3 on b stopped") == 0);
}

TEST_CASE(
    "a run in which no rank moves is named within the timeout and a second") {
  for (const auto& hosts : {std::vector{1}, {2}, {2, 2}, {1, 1, 1}}) {
    FakeCluster cluster(hosts);
    const int ranks = static_cast<int>(cluster.processes.size());
    cluster.run_for(3);
    for (int r = 0; r < ranks; ++r) cluster.rank(r).still = true;
    const double seconds = cluster.run_until_explained(60);
    CHECK(seconds > FakeCluster::kTimeout_s);
    CHECK(seconds < FakeCluster::kTimeout_s + 1);
    CHECK(cluster.folder.causes == std::vector<std::string>{"stuck"});
    CHECK(cluster.folder.named.size() == static_cast<size_t>(ranks));
    cluster.run_for(2);
    CHECK(cluster.exit_codes().find('-') == std::string::npos);
  }
}

TEST_CASE("one rank that moves, or moves in time, is a run that goes on") {
  FakeCluster cluster({2, 2});
  for (int r = 0; r < 4; ++r) cluster.rank(r).still = true;
  cluster.run_for(FakeCluster::kTimeout_s - 0.5);
  cluster.rank(3).still = false;
  cluster.run_for(30);
  CHECK(cluster.folder.sentences.empty());
}

TEST_CASE("what a suspension cut in two has not stood still meanwhile") {
  for (const auto& hosts : {std::vector{1}, {2, 2}}) {
    FakeCluster cluster(hosts);
    const int ranks = static_cast<int>(cluster.processes.size());
    for (int r = 0; r < ranks; ++r) cluster.rank(r).still = true;
    cluster.run_for(1);
    cluster.now += 3600;
    cluster.run_for(FakeCluster::kTimeout_s - 0.5);
    for (int r = 0; r < ranks; ++r) cluster.rank(r).still = false;
    cluster.run_for(20);
    CHECK(cluster.folder.sentences.empty());
  }
}

TEST_CASE("a rank that goes on before the timeout is forgiven") {
  FakeCluster cluster({2, 2});
  cluster.run_for(3);
  cluster.stop(0);
  cluster.run_for(kSilence_s - 1.5);
  cluster.go_on(0);
  cluster.run_for(20);
  CHECK(cluster.folder.sentences.empty());
  CHECK(cluster.exit_codes() == "- - - -");
}

TEST_CASE("ranks that end in order are no failure, whoever ends first") {
  for (const int first : {0, 1, 2, 3}) {
    FakeCluster cluster({2, 2});
    cluster.run_for(2);
    for (int i = 0; i < 4; ++i) {
      const int rank = (first + i) % 4;
      cluster.rank(rank).phase = Phase::kEnded;
      cluster.process(rank).reporter->say_goodbye();
      cluster.process(rank).killed = true;
      cluster.run_for(8);
    }
    CHECK(cluster.folder.sentences.empty());
    CHECK(cluster.folder.log.empty());
    CHECK(cluster.exit_codes() == "- - - -");
  }
}
