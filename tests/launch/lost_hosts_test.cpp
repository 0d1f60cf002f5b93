#include "chexnet/launch/lost_hosts.hpp"

#include <fstream>

#include "chexnet/core/clock.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("the ranks that are left share the batch as it is") {
  struct Case {
    int64_t batch, accumulate;
    int most, ranks;
  };
  for (const Case& c : std::vector<Case>{{12, 1, 4, 4},
                                         {12, 1, 5, 4},
                                         {12, 2, 5, 3},
                                         {512, 1, 28, 16},
                                         {16, 4, 3, 2},
                                         {7, 1, 6, 1},
                                         {7, 7, 3, 1}})
    CHECK(ranks_that_share(c.batch, c.accumulate, c.most) == c.ranks);
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
  CHECK(command_text(ask_command(launch, two, "f")) ==
        "mpirun --mca orte_execute_quiet 1 --hostfile f --bind-to none "
        "--map-by ppr:1:node -np 2 "
        "--allow-run-as-root --mca plm_rsh_agent rsh true");
  launch.mpirun.family = MpiFamily::kMpich;
  launch.mpi_args.clear();
  CHECK(command_text(ask_command(launch, two, "f")) ==
        "mpirun -hosts node1:1,node2:1 -bind-to none "
        "-np 2 true");
}

TEST_CASE("a host on which the launcher starts nothing in time is lost") {
  const ScratchFolder folder;
  // Answers for all hosts but those whose names stand in a file, on which it
  // fails, or hangs.
  const auto script = folder / "mpirun";
  std::ofstream(script) << "#!/bin/sh\n"
                           "while [ \"$1\" != --hostfile ]; do shift; done\n"
                           "! grep -q node-bad $2 || exit 1\n"
                           "! grep -q node-mute $2 || exec sleep 60\n";
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
