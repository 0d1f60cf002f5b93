#include "chexnet/comm/watch/failure_detector.hpp"

#include "chexnet/comm/watch/postmortem.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// Four ranks on two hosts in the middle of backward.
std::vector<RankView> healthy() {
  std::vector<RankView> ranks(4);
  for (int r = 0; r < 4; ++r) {
    auto& view = ranks[static_cast<size_t>(r)];
    view.rank = r;
    view.host = r < 2 ? "node1" : "node2";
    view.gpu = "Tesla V100";
    view.pid = 100 + r;
    view.phase = Phase::kBackward;
    view.phase_age_s = 0.2;
    view.sequence = 812;
    view.step = 40;
  }
  return ranks;
}
constexpr WatchTimeouts kTimeouts{5, 5};

}  // namespace

TEST_CASE("which ranks a run fails through") {
  auto ranks = healthy();
  const auto wait_all = [&] {
    for (auto& r : ranks) {
      r.phase = Phase::kAllReduceWait;
      r.phase_age_s = 5.5;
    }
  };
  const auto found = [&] {
    const auto failure = detect_failure(ranks, kTimeouts);
    if (!failure) return std::string("nobody");
    std::string text = cause_name(failure->cause);
    for (const int rank : failure->ranks) text += " " + std::to_string(rank);
    return text + " -> " + std::to_string(failure->exit_code());
  };
  CHECK(found() == "nobody");
  SECTION("a process that is gone") {
    wait_all();
    ranks[3].gone = true;
    ranks[1].heartbeat_age_s = 9;
    CHECK(found() == "died 3 -> 5");
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks)
              .find("Rank 3 on node2 (Tesla V100) died") == 0);
  }
  SECTION("a silent host") {
    ranks[2].host_silent_s = ranks[3].host_silent_s = 6;
    ranks[2].heartbeat_age_s = ranks[3].heartbeat_age_s = 6;
    CHECK(found() == "cut off 2 3 -> 5");
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks)
              .find("Host node2 (rank 2, 3) has not") == 0);
  }
  SECTION("a rank whose threads do not run, rank 0 included") {
    ranks[0].heartbeat_age_s = 5.1;
    CHECK(found() == "stopped 0 -> 7");
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks)
              .find("stopped answering 5.1 s ago during backward of step 40") !=
          std::string::npos);
  }
  SECTION("ranks that a signal stopped together, with the first to be late") {
    for (const size_t r : {1, 2, 3}) {
      ranks[r].heartbeat_age_s = 4.95;
      ranks[r].stopped = true;
    }
    CHECK(found() == "nobody");
    ranks[2].heartbeat_age_s = 5.01;
    CHECK(found() == "stopped 1 2 3 -> 7");
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks)
              .find("(processes 101, 102, 103 are stopped by a signal or a "
                    "debugger)") != std::string::npos);
  }
  SECTION("a rank that was stopped while the others waited for it already") {
    wait_all();
    ranks[1].phase = Phase::kDataWait;
    ranks[1].heartbeat_age_s = 3;
    ranks[1].stopped = true;
    CHECK(found() == "stopped 1 -> 7");
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks)
              .find("stopped answering 3.0 s ago during waiting for data of "
                    "step 40 (collective 812) (process 101 is stopped by") !=
          std::string::npos);
  }
  SECTION("a rank that was stopped while it waited itself") {
    wait_all();
    ranks[3].heartbeat_age_s = 4.9;
    ranks[3].stopped = true;
    CHECK(found() == "stopped 3 -> 7");
  }
  SECTION("a rank that lets the others wait") {
    wait_all();
    ranks[1].phase = Phase::kDataWait;
    CHECK(found() == "stuck 1 -> 7");
  }
  SECTION("a rank that lets the others wait before the first step") {
    wait_all();
    for (auto& r : ranks) r.step = 0;
    ranks[1].phase = Phase::kWeights;
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks) ==
          "Rank 1 on node1 (Tesla V100) has been in reading weights "
          "(collective 812) for 5.5 s while others wait for it");
  }
  SECTION("a rank whose GPU does not finish computing") {
    wait_all();
    ranks[1].phase = Phase::kBackward;
    CHECK(found() == "GPU hangs 1 -> 7");
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks) ==
          "Rank 1 on node1 (Tesla V100): the GPU has been computing step 40 "
          "for 5.5 s and does not finish, while others wait for its gradients");
    ranks[1].gpu.clear();
    CHECK(found() == "stuck 1 -> 7");
  }
  SECTION("a rank that waits in an earlier collective") {
    wait_all();
    ranks[2].sequence = 811;
    ranks[2].step = 39;
    CHECK(found() == "stuck 2 -> 7");
    ranks[2].step = 40;
    ranks[2].phase = Phase::kControl;
    CHECK(found() == "stuck 2 -> 7");
  }
  SECTION("all wait for gradients of one step, some of which came to some") {
    wait_all();
    ranks[2].sequence = 811;
    CHECK(found() == "network 0 1 2 3 -> 7");
  }
  SECTION("a host was cut off while the others waited already") {
    wait_all();
    ranks[2].host_silent_s = ranks[3].host_silent_s = 4.9;
    ranks[3].sequence = 811;
    CHECK(found() == "cut off 2 3 -> 5");
    ranks[3].phase = Phase::kDataWait;
    CHECK(found() == "cut off 2 3 -> 5");
    ranks[2].host_silent_s = ranks[3].host_silent_s = 0.5;
    CHECK(found() == "stuck 3 -> 7");
  }
  SECTION("all wait in the same collective") {
    wait_all();
    CHECK(found() == "network 0 1 2 3 -> 7");
  }
  SECTION("no rank moves, and none waits in a collective") {
    for (auto& r : ranks) {
      r.phase_age_s = 5.5;
      r.gpu.clear();
    }
    CHECK(found() == "stuck 0 1 2 3 -> 7");
    CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks) ==
          "Ranks 0, 1, 2, 3, first on node1 have been in backward of step 40 "
          "(collective 812) for 5.5 s, and no rank has moved since (process "
          "100)");
    ranks[2].phase_age_s = 0.1;
    CHECK(found() == "nobody");
  }
  SECTION(
      "the one rank of a run stands still in each phase, on a GPU or none") {
    ranks.resize(1);
    ranks[0].phase_age_s = 5.5;
    for (const Phase phase :
         {Phase::kCopy, Phase::kForward, Phase::kBackward, Phase::kOptimizer}) {
      ranks[0].phase = phase;
      CHECK(found() == "GPU hangs 0 -> 7");
      CHECK(failure_text(*detect_failure(ranks, kTimeouts), ranks) ==
            "Rank 0 on node1 (Tesla V100): the GPU has been computing step 40 "
            "for 5.5 s and does not finish");
    }
    for (const Phase phase : {Phase::kOther, Phase::kDataWait, Phase::kEvaluate,
                              Phase::kCheckpoint}) {
      ranks[0].phase = phase;
      CHECK(found() == "stuck 0 -> 7");
    }
    ranks[0].phase = Phase::kEnded;
    ranks[0].ended = true;
    CHECK(found() == "nobody");
  }
  SECTION("long work of one rank while another moves is no failure") {
    for (auto& r : ranks) r.phase_age_s = 500;
    ranks[0].phase_age_s = 0;
    ranks[3].ended = ranks[3].gone = true;
    ranks[2].ended = true;
    ranks[2].host_silent_s = 99;
    CHECK(found() == "nobody");
  }
}

TEST_CASE("a post-mortem can be read back, and an old one is put aside") {
  const ScratchFolder folder;
  PostMortem report;
  report.cause = "stopped";
  report.ranks = {0};
  report.exit_code = 7;
  report.what = "Rank 0 stopped";
  report.resume = "chexnet-train train c.yaml --resume auto";
  report.views = healthy();
  CHECK_FALSE(read_postmortem(folder.path()));
  write_postmortem(folder.path(), report);
  const auto note = read_postmortem(folder.path());
  REQUIRE(note);
  CHECK(note->exit_code == 7);
  CHECK(note->sentence ==
        "Rank 0 stopped; last good checkpoint: none; resume with: "
        "chexnet-train train c.yaml "
        "--resume auto");
  put_postmortem_aside(folder.path());
  CHECK_FALSE(read_postmortem(folder.path()));
  write_postmortem(folder.path(), report);
  put_postmortem_aside(folder.path());
  CHECK(std::filesystem::exists(folder.path() / "postmortem-2.json"));
}
