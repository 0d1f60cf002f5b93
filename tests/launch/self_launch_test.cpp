#include "chexnet/launch/self_launch.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/shell_words.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("how many ranks start, and where") {
  struct Case {
    RankRequest request;
    BatchJob job;
    std::vector<HostSlots> hosts;
    int ranks, on_hosts, per_host;
  };
  BatchJob slurm;
  slurm.kind = BatchJob::Kind::kSlurm;
  slurm.nodes = 3;
  slurm.tasks = 6;
  BatchJob slurm_nodes_only = slurm;
  slurm_nodes_only.tasks = 0;
  const std::vector<HostSlots> two = {{"node1", 2}, {"node3", 4}};
  const std::vector<Case> cases = {
      {{}, {}, {}, 1, 1, 1},          // a laptop
      {{0, 0, 4}, {}, {}, 4, 1, 4},   // a node with four GPUs
      {{2, 0, 4}, {}, {}, 2, 1, 2},   // two ranks wanted there
      {{}, {}, two, 6, 2, 0},         // CPU ranks by the slots of a host file
      {{0, 0, 4}, {}, two, 8, 2, 4},  // GPUs go before slots
      {{0, 2, 4}, {}, two, 4, 2, 2},  // --ranks-per-node goes before GPUs
      {{3, 0, 0}, {}, two, 3, 2, 0},  // three ranks fill the slots in order
      {{2, 2, 0}, {}, two, 2, 1, 2},  // two of them fit one host
      {{}, slurm, {}, 6, 3, 0},       // --ntasks
      // One for each GPU of three nodes.
      {{0, 0, 4}, slurm_nodes_only, {}, 12, 3, 4},
      {{}, slurm_nodes_only, {}, 3, 3, 1},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& c = cases[i];
    const RankLayout layout = decide_layout(c.request, c.job, c.hosts);
    INFO("case " << i);
    CHECK(layout.ranks == c.ranks);
    CHECK(layout.hosts == c.on_hosts);
    CHECK(layout.ranks_per_host == c.per_host);
  }
}

TEST_CASE("mpirun is told hosts that it does not learn by itself") {
  SelfLaunch launch;
  launch.program = "x";
  const auto hosts = [&](RankLayout layout, std::vector<HostSlots> of_job) {
    launch.layout = layout;
    launch.hosts = std::move(of_job);
    const std::string text = command_text(start_command(launch));
    const auto begin = text.find("--host ");
    return text.substr(begin, text.find(' ', begin + 7) - begin);
  };
  CHECK(hosts({6, 2, 0}, {{"a", 4}, {"b", 2}}) == "--host a:4,b:2");
  CHECK(hosts({8, 2, 4}, {{"a", 1}, {"b", 1}}) == "--host a:4,b:4");
  CHECK(hosts({4, 2, 2}, {{"a", 0}, {"b", 0}}) == "--host a:2,b:2");
  CHECK(hosts({3, 2, 0}, {{"a", 0}, {"b", 0}}) == "--host a:2,b:2");
  CHECK(hosts({2, 1, 2}, {{"elsewhere", 2}}) == "--host elsewhere:2");
}

TEST_CASE("the mpirun command") {
  SelfLaunch here;
  here.layout = {2, 1, 2};
  here.mpi_args = {"-v"};
  here.program = "/bin/x";
  here.arguments = {"train", "a b"};
  CHECK(command_text(start_command(here)) ==
        "mpirun --mca orte_execute_quiet 1 --map-by socket -np 2 -v /bin/x "
        "train 'a b'");
  here.oversubscribe = true;
  here.as_root = true;
  CHECK(command_text(start_command(here)) ==
        "mpirun --mca orte_execute_quiet 1 --map-by socket --oversubscribe -np "
        "2 --allow-run-as-root -v "
        "/bin/x train 'a b'");
  SelfLaunch there;
  there.layout = {4, 2, 2};
  there.hosts = {{"n1", 2}, {"n2", 2}};
  there.forwarded = {"NIH"};
  there.program = "x";
  there.arguments = {"it's"};
  CHECK(command_text(start_command(there)) ==
        "mpirun --host n1:2,n2:2 --bind-to none --map-by ppr:2:node -x NIH "
        "-np 4 x 'it'\\''s'");
  // One other host: its ranks are not to run here.
  there.layout = {2, 1, 2};
  CHECK(command_text(start_command(there)) ==
        "mpirun --host n1:2,n2:2 --bind-to none --map-by ppr:2:node -x NIH "
        "-np 2 x 'it'\\''s'");
  const char* const environment[] = {"NIH=/d",
                                     "PWD=/x",
                                     "_=x",
                                     "SLURM_JOB_ID=1",
                                     "AWS_PROFILE=p",
                                     "OMPI_MCA_btl=x",
                                     "ATEN_CPU_CAPABILITY=avx2",
                                     "PSM3_NIC=x",
                                     "FI_PROVIDER=x",
                                     "UCC_TLS=x",
                                     "MLX5_SCATTER_TO_CQE=0",
                                     "HCOLL_MAIN_IB=x",
                                     nullptr};
  CHECK(forwarded_variables(environment, {"NIH"}) ==
        std::vector<std::string>{"ATEN_CPU_CAPABILITY", "AWS_PROFILE",
                                 "FI_PROVIDER", "HCOLL_MAIN_IB",
                                 "MLX5_SCATTER_TO_CQE", "NIH", "PSM3_NIC",
                                 "UCC_TLS"});
  CHECK(forwarded_variables(environment, {}).size() == 7);
}

TEST_CASE("the command of MPICH's mpirun has its own words") {
  SelfLaunch launch;
  launch.mpirun = {"mpirun.mpich", MpiFamily::kMpich, false};
  launch.layout = {2, 1, 2};
  launch.oversubscribe = launch.as_root = true;
  launch.mpi_args = {"-iface", "eth0"};
  launch.program = "x";
  launch.arguments = {"train"};
  CHECK(command_text(start_command(launch)) ==
        "mpirun.mpich -bind-to none -np 2 -iface eth0 x "
        "train");
  launch.mpi_args.clear();
  launch.forwarded = {"NIH"};
  launch.hosts = {{"node1", 4}, {"node2", 1}, {"node3", 4}};
  launch.layout = {4, 2, 2};
  CHECK(command_text(start_command(launch)) ==
        "mpirun.mpich -hosts node1:2,node2:2 -bind-to none "
        "-np 4 x train");
  launch.layout = {6, 3, 0};  // by slots
  CHECK(command_text(start_command(launch))
            .starts_with("mpirun.mpich -hosts node1:4,node2:1,node3:1 "));
  // The batch system's hosts, by Intel's mpirun.
  launch.hosts.clear();
  launch.mpirun = {"mpirun", MpiFamily::kMpich, true};
  launch.layout = {4, 2, 2};
  CHECK(command_text(start_command(launch)) == "mpirun -ppn 2 -np 4 x train");
}

TEST_CASE("ranks are put on hosts") {
  const std::string own = host_name();
  struct Case {
    std::vector<HostSlots> hosts;
    RankLayout layout;
    bool alone, first_here, oversubscribe;
    const char* hostfile;
  };
  const std::vector<Case> cases = {
      {{}, {1, 1, 1}, true, true, false, ""},
      {{}, {3, 1, 3}, false, true, true, ""},
      {{{own, 2}}, {1, 1, 1}, true, true, false, ""},
      {{{"elsewhere.invalid", 2}}, {1, 1, 1}, false, false, false, "file"},
      {{{own, 2}, {"elsewhere.invalid", 2}},
       {4, 2, 2},
       false,
       true,
       false,
       "file"},
      {{{"elsewhere.invalid", 1}, {own, 1}},
       {4, 2, 2},
       false,
       false,
       true,
       "file"}};
  for (const auto& c : cases) {
    SelfLaunch launch;
    launch.layout = c.layout;
    put_on_hosts(launch, c.hosts, c.hosts.empty() ? "" : "file", 0, 2);
    INFO("case " << &c - cases.data());
    CHECK(launch.alone == c.alone);
    CHECK(launch.first_here == c.first_here);
    CHECK(launch.oversubscribe == c.oversubscribe);
    CHECK(launch.hostfile == c.hostfile);
  }
}

TEST_CASE("a parent passes on the exit code of its command") {
  // Also of one that ignores the signal of ending children, as some daemons do.
  for (const auto handler : {SIG_DFL, SIG_IGN}) {
    signal(SIGCHLD, handler);
    ParentSignals signals;
    CHECK(run_as_parent({"sh", "-c", "exit 75"}, signals) == 75);
    CHECK(run_as_parent({"sh", "-c", "kill -9 $$"}, signals) == 137);
    CHECK(run_as_parent({"/no/such/program"}, signals) ==
          static_cast<int>(ExitCode::kDevice));
  }
  ParentSignals signals;
  CHECK(run_as_parent({"sleep", "60"}, signals,
                      {.ends_it = [](pid_t) { return true; }}) == 137);
}

TEST_CASE("mpirun does not see what would narrow its own srun") {
  const ScratchFolder folder;
  const std::string mpirun = (folder.path() / "mpirun").string();
  std::ofstream(mpirun) << "#!/bin/sh\nexit ${SRUN_CPUS_PER_TASK-0}\n";
  chmod(mpirun.c_str(), S_IRWXU);
  setenv("SRUN_CPUS_PER_TASK", "3", 1);
  const std::string path = variable(process_environment(), "PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  ParentSignals signals;
  CHECK(run_as_parent({"mpirun"}, signals) == 0);
  setenv("PATH", path.c_str(), 1);
  unsetenv("SRUN_CPUS_PER_TASK");
}

TEST_CASE("a signal between two commands waits until it is looked at") {
  ParentSignals signals;
  CHECK_FALSE(signals.stop_within(0));
  CHECK(run_as_parent({"true"}, signals) == 0);
  kill(getpid(), SIGUSR1);
  CHECK(signals.stop_within(0));
  CHECK(signals.asked_to_stop());
  // A command that it starts has the mask from before.
  CHECK(run_as_parent({"sh", "-c", "kill -TERM $$; exit 3"}, signals) ==
        128 + SIGTERM);
}

TEST_CASE("a second TERM ends a command that is stopped") {
  ParentSignals signals;
  for (int i = 0; i < 2; ++i) {
    kill(getpid(), SIGTERM);
    signals.next(1);
  }
  REQUIRE(signals.ends_at_once());
  kill(getpid(), SIGTERM);
  CHECK(run_as_parent({"sh", "-c", "kill -STOP $$"}, signals) == 137);
}

TEST_CASE("a signal behind the end of all commands changes nothing") {
  {
    const ParentSignals signals;
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP})
      raise(signal);
  }
  sigset_t waiting;
  sigpending(&waiting);
  CHECK_FALSE(sigismember(&waiting, SIGTERM));
}
