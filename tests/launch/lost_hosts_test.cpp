#include "launch/lost_hosts.hpp"

#include <fstream>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/shell_words.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("the ranks that are left share the batch as it is") {
  struct Case {
    int64_t batch;
    RankShare before;
    int most;
    RankShare after;
  };
  for (const Case& c :
       std::vector<Case>{{12, {6, 1}, 6, {6, 1}},  // none is lost
                         {12, {6, 1}, 3, {3, 2}},
                         {24, {6, 1}, 5, {4, 2}},  // 6 images in 3 and 3
                         {12, {6, 1}, 5, {3, 2}},  // not in 1, 1 and 1
                         {12, {6, 2}, 5, {4, 3}},
                         {512, {32, 1}, 28, {16, 2}},
                         {512, {32, 4}, 28, {16, 8}},
                         {16, {4, 4}, 3, {2, 8}},
                         {9, {3, 1}, 2, {1, 3}},
                         {7, {7, 1}, 6, {1, 7}},
                         {7, {1, 7}, 1, {1, 7}}}) {
    INFO(c.batch << " images, " << c.most << " ranks left");
    const RankShare share = ranks_that_share(c.batch, c.before, c.most);
    CHECK(share.ranks == c.after.ranks);
    CHECK(share.accumulate == c.after.accumulate);
  }
}

TEST_CASE("fewer ranks compute as many images at once, or half as many") {
  for (int64_t batch = 1; batch <= 96; ++batch)
    for (int ranks = 1; ranks <= 12; ++ranks)
      for (int64_t accumulate = 1; accumulate <= 4; ++accumulate) {
        if (batch % (ranks * accumulate) != 0) continue;
        for (int most = 1; most <= ranks; ++most) {
          const auto now = ranks_that_share(batch, {ranks, accumulate}, most);
          const int64_t pieces = now.ranks * now.accumulate;
          const int64_t was = batch / (ranks * accumulate);
          const int64_t is = batch / pieces;
          const bool holds = now.ranks <= most && batch % pieces == 0 &&
                             is <= was && 2 * is >= was && (is > 1 || was == 1);
          if (!holds) FAIL(batch << " on " << ranks << " -> " << most);
        }
      }
}

TEST_CASE("hosts hold ranks by their slots, or alike") {
  const std::vector<HostSlots> hosts = {{"node1", 2}, {"node3", 3}};
  CHECK(ranks_on(hosts, 0) == 5);
  CHECK(ranks_on(hosts, 4) == 8);
}

TEST_CASE("hosts are asked by the launcher that starts their ranks") {
  SelfLaunch launch;
  launch.layout = {4, 2, 2};
  launch.as_root = true;
  launch.mpi_args = {"--mca", "plm_rsh_agent", "rsh"};
  launch.program = "chexnet-train";
  launch.arguments = {"train"};
  const std::vector<HostSlots> two = {{"node1", 2}, {"node2", 2}};
  CHECK(command_text(probe_command(launch, two)) ==
        "mpirun --host node1:2,node2:2 --bind-to none "
        "--map-by ppr:1:node -np 2 "
        "--allow-run-as-root --mca plm_rsh_agent rsh true");
  launch.mpirun.family = MpiFamily::kMpich;
  launch.mpi_args.clear();
  CHECK(command_text(probe_command(launch, two)) ==
        "mpirun -hosts node1:1,node2:1 -bind-to none "
        "-np 2 true");
}

TEST_CASE("a host on which the launcher starts nothing in time is lost") {
  const ScratchFolder folder;
  // Answers for all hosts but those whose names stand in a file, on which it
  // fails, or hangs.
  const auto script = folder / "mpirun";
  std::ofstream(script) << "#!/bin/sh\n"
                           "while [ \"$1\" != --host ]; do shift; done\n"
                           "case $2 in *node-bad*) exit 1;;\n"
                           "*node-mute*) exec sleep 60;; esac\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  SelfLaunch launch;
  launch.mpirun.command = script.string();
  launch.layout = {3, 3, 1};
  launch.hosts = {{"node-good", 1}, {"node-bad", 1}, {"node-other", 1}};
  ParentSignals signals;
  constexpr double kLimit_s = 4;
  CHECK(lost_hosts(launch, kLimit_s, signals) ==
        std::vector<std::string>{"node-bad"});
  launch.hosts[1].name = "node-mute";
  CHECK(lost_hosts(launch, kLimit_s, signals) ==
        std::vector<std::string>{"node-mute"});
  launch.hosts[1].name = "node-back";
  CHECK(lost_hosts(launch, kLimit_s, signals).empty());
}
