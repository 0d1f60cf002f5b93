#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "chexnet/core/error.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/hosts.hpp"
#include "chexnet/launch/network.hpp"
#include "chexnet/launch/plugin.hpp"
#include "chexnet/launch/restart_policy.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {
Environment made_up(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}
}  // namespace

TEST_CASE("a rank knows its launcher") {
  CHECK_FALSE(started_as_rank(made_up({})));
  CHECK_FALSE(started_as_rank(made_up({{"SLURM_NTASKS", "4"}})));  // a batch script is no rank
  CHECK(started_as_rank(made_up({{"OMPI_COMM_WORLD_SIZE", "2"}})));
  CHECK(started_as_rank(made_up({{"PMIX_RANK", "0"}})));
}

TEST_CASE("processes that do not know each other are told the right command") {
  struct Case {
    std::map<std::string, std::string> env;
    int world;
    const char* part;  // empty = no problem
  };
  const std::vector<Case> cases = {{{}, 1, ""},
                                   {{{"SLURM_NTASKS", "4"}}, 1, ""},
                                   {{{"SLURM_STEP_NUM_TASKS", "4"}}, 1, "srun --mpi=pmix"},
                                   {{{"SLURM_STEP_NUM_TASKS", "4"}}, 4, ""},
                                   {{{"SLURM_STEP_NUM_TASKS", "2"},
                                     {"OMPI_COMM_WORLD_RANK", "0"},
                                     {"OMPI_COMM_WORLD_SIZE", "1"}},
                                    1,
                                    ""},
                                   {{{"OMPI_COMM_WORLD_SIZE", "2"}}, 1, "mpirun"},
                                   {{{"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}, 1, "torchrun"}};
  for (const auto& c : cases) {
    const std::string text = singleton_problem(made_up(c.env), c.world);
    INFO(text);
    CHECK((std::string(c.part).empty() ? text.empty() : text.find(c.part) != std::string::npos));
  }
}

TEST_CASE("a launcher that Open MPI does not understand is told before MPI starts") {
  const auto problem = [](std::map<std::string, std::string> env) {
    return launcher_problem(made_up(std::move(env)));
  };
  const std::map<std::string, std::string> pmi2 = {
      {"PMI_FD", "11"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"SLURM_STEP_ID", "0"}};
  CHECK(problem(pmi2).find("srun --mpi=pmix") != std::string::npos);
  CHECK(problem({{"PMI_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}).find("srun --mpi=pmix") !=
        std::string::npos);
  CHECK(problem({{"PMI_FD", "5"}, {"PMI_RANK", "0"}}).find("another MPI") != std::string::npos);
  CHECK(problem({}).empty());
  CHECK(problem({{"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "0"}}).empty());
  CHECK(problem({{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "0"}, {"PMI_FD", "3"}}).empty());
  auto built_for_it = pmi2;
  built_for_it["OMPI_MCA_pmix"] = "s2";
  CHECK(problem(built_for_it).empty());
}

TEST_CASE("a program of a bundle is started again by the bundle's script") {
  const auto words = [](std::map<std::string, std::string> env) {
    return command_text(command_words(made_up(std::move(env)), "/b/bin/chexnet-train"));
  };
  CHECK(words({}) == "/b/bin/chexnet-train");
  CHECK(words({{"CHEXNET_PROGRAM", "/b/run"}}) == "/b/run");
  CHECK(words({{"CHEXNET_PROGRAM", "/b/run"}, {"CHEXNET_TORCH", "/t"}}) == "/b/run --torch /t");
  CHECK(words({{"CHEXNET_PROGRAM", "/other/run"}}) == "/b/bin/chexnet-train");
}

TEST_CASE("habits of torchrun under srun get the fix") {
  const auto step = made_up({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_CPUS_PER_TASK", "8"}});
  CHECK(idle_gpus_problem(step, 4, 1).find("--ntasks-per-node=4 --mpi=pmix") != std::string::npos);
  CHECK(idle_gpus_problem(step, 4, 4).empty());
  CHECK(idle_gpus_problem(step, 1, 2).empty());  // --gpus-per-task: each rank sees its own
  CHECK(idle_gpus_problem(made_up({{"OMPI_COMM_WORLD_RANK", "0"}}), 4, 1).empty());
  CHECK(narrow_step_problem(step, 1).find("srun -c 8") != std::string::npos);
  CHECK(narrow_step_problem(step, 8).empty());
  CHECK(narrow_step_problem(made_up({{"SLURM_CPUS_PER_TASK", "8"}}), 1).empty());
}

TEST_CASE("cores are shared between the ranks that are bound to them") {
  CHECK(threads_for(20, 2) == 10);
  CHECK(threads_for(2, 4) == 1);
  CHECK(threads_for(0, 0) == 1);
}

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
      {{}, {}, {}, 1, 1, 1},                        // a laptop
      {{0, 0, 4}, {}, {}, 4, 1, 4},                 // a node with four GPUs
      {{2, 0, 4}, {}, {}, 2, 1, 2},                 // two ranks wanted there
      {{}, {}, two, 6, 2, 0},                       // CPU ranks by the slots of a host file
      {{0, 0, 4}, {}, two, 8, 2, 4},                // GPUs go before slots
      {{0, 2, 4}, {}, two, 4, 2, 2},                // --ranks-per-node goes before GPUs
      {{3, 0, 0}, {}, two, 3, 2, 0},                // three ranks fill the slots in order
      {{2, 2, 0}, {}, two, 2, 1, 2},                // two of them fit one host
      {{}, slurm, {}, 6, 3, 0},                     // --ntasks
      {{0, 0, 4}, slurm_nodes_only, {}, 12, 3, 4},  // one for each GPU of three nodes
      {{}, slurm_nodes_only, {}, 3, 3, 1},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& c = cases[i];
    const RankLayout layout = decide_layout(c.request, c.job, c.hosts);
    INFO("case " << i);
    CHECK(layout.ranks == c.ranks);
    CHECK(layout.hosts == c.on_hosts);
    CHECK(layout.ranks_per_host == c.per_host);
  }
}

TEST_CASE("the mpirun command") {
  SelfLaunch here;
  here.layout = {2, 1, 2};
  here.mpi_args = {"-q"};
  here.program = "/bin/x";
  here.arguments = {"train", "a b"};
  CHECK(command_text(start_command(here)) == "mpirun --map-by socket -np 2 -q /bin/x train 'a b'");
  here.oversubscribe = true;
  here.as_root = true;
  CHECK(command_text(start_command(here)) ==
        "mpirun --map-by socket --oversubscribe -np 2 --allow-run-as-root -q /bin/x train 'a b'");
  SelfLaunch there;
  there.layout = {4, 2, 2};
  there.hostfile = "hosts";
  there.forwarded = {"NIH"};
  there.program = "x";
  there.arguments = {"it's"};
  CHECK(command_text(start_command(there)) ==
        "mpirun --hostfile hosts --bind-to none --map-by ppr:2:node -x NIH -np 4 x 'it'\\''s'");
  // One other host: its ranks are not to run here.
  there.layout = {2, 1, 2};
  CHECK(command_text(start_command(there)) ==
        "mpirun --hostfile hosts --bind-to none --map-by ppr:2:node -x NIH -np 2 x 'it'\\''s'");
  const char* const environment[] = {"NIH=/d",        "PWD=/x",         "_=x",  "SLURM_JOB_ID=1",
                                     "AWS_PROFILE=p", "OMPI_MCA_btl=x", nullptr};
  CHECK(forwarded_variables(environment, {"NIH"}) ==
        std::vector<std::string>{"AWS_PROFILE", "NIH"});
  CHECK(forwarded_variables(environment, {}) == std::vector<std::string>{"AWS_PROFILE"});
}

TEST_CASE("host files of Open MPI, MPICH and PBS") {
  const ScratchFolder folder;
  const auto hosts_of = [&](const std::string& text) {
    std::ofstream(folder.path() / "hosts") << text;
    std::string found;
    for (const auto& host : read_hostfile(folder.path() / "hosts"))
      found += host.name + "=" + std::to_string(host.slots) + " ";
    return found;
  };
  CHECK(hosts_of("# two\nnode1 slots=2 max_slots=4\n\nnode2 slots=3 # c\n") == "node1=2 node2=3 ");
  CHECK(hosts_of("node1:4\nnode2\n") == "node1=4 node2=1 ");
  CHECK(hosts_of("n2\nn2\nn1\nn2\n") == "n2=3 n1=1 ");
  CHECK(error_of<ConfigError>([&] { hosts_of("n1\nn2 slot=2\n"); }).find("hosts:2: 'slot=2'") !=
        std::string::npos);
  CHECK(error_of<ConfigError>([&] { hosts_of("n1 slots=0\n"); }).find("'0' is no number") !=
        std::string::npos);
  CHECK(error_of<ConfigError>([&] { hosts_of("# none\n"); }).find("names no host") !=
        std::string::npos);
}

TEST_CASE("a host knows its own names") {
  CHECK(is_this_host("localhost"));
  CHECK(is_this_host("127.0.0.1"));
  CHECK(is_this_host("127.0.0.9"));
  CHECK(is_this_host(host_name()));
  CHECK(is_this_host(host_name() + ".some.domain"));
  CHECK_FALSE(is_this_host("192.0.2.7"));
  CHECK_FALSE(is_this_host("no-such-host.invalid"));
}

TEST_CASE("an option counts as given in both spellings") {
  CHECK(has_option({"train", "--resume", "auto"}, "--resume"));
  CHECK(has_option({"train", "--resume=auto"}, "--resume"));
  CHECK_FALSE(has_option({"train", "--resumed", "resume", "--set", "x=--resume"}, "--resume"));
}

TEST_CASE("networks become settings of Open MPI and NCCL") {
  const auto text = [](const std::string& network) {
    std::string found;
    const auto settings = network_settings(*NetworkChoice::parse(network));
    for (const auto& [name, value] : settings.environment) found += name + "=" + value + " ";
    return found + command_text(settings.mpirun);
  };
  CHECK(text("auto").empty());
  CHECK(text("ib:mlx5_0") ==
        "OMPI_MCA_pml=ucx UCX_NET_DEVICES=mlx5_0:1 NCCL_IB_HCA=mlx5_0 NCCL_IB_DISABLE=0 ");
  CHECK(text("opa") == "OMPI_MCA_pml=cm OMPI_MCA_mtl=psm2 NCCL_IB_HCA=hfi1 ");
  CHECK(text("tcp:eth0") ==
        "OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self NCCL_IB_DISABLE=1 "
        "OMPI_MCA_btl_tcp_if_include=eth0 NCCL_SOCKET_IFNAME=eth0 --mca oob_tcp_if_include eth0");
  CHECK(text("tcp:10.1.0.0/16").find("NCCL_SOCKET_IFNAME") == std::string::npos);
  setenv("UCX_NET_DEVICES", "mine", 1);
  apply(network_settings(*NetworkChoice::parse("ib:mlx5_0")));
  CHECK(std::string(getenv("UCX_NET_DEVICES")) == "mine");
  for (const char* name : {"UCX_NET_DEVICES", "OMPI_MCA_pml", "NCCL_IB_HCA", "NCCL_IB_DISABLE"})
    unsetenv(name);
}

TEST_CASE("a batch job knows its id, shape and time left") {
  CHECK(batch_job(made_up({})).kind == BatchJob::Kind::kNone);
  const auto slurm = made_up({{"SLURM_JOB_ID", "77"},
                              {"SLURM_ARRAY_JOB_ID", "70"},
                              {"SLURM_ARRAY_TASK_ID", "3"},
                              {"SLURM_JOB_NUM_NODES", "2"},
                              {"SLURM_NTASKS", "8"},
                              {"SLURM_CPUS_ON_NODE", "40"},
                              {"SLURM_RESTART_COUNT", "1"}});
  const BatchJob array = batch_job(slurm);
  CHECK(array.id == "70_3");
  CHECK(array.nodes == 2);
  CHECK(array.tasks == 8);
  CHECK(array.host_cpus == 40);
  CHECK(array.restarts == 1);

  const ScratchFolder folder;
  std::ofstream(folder.path() / "nodes") << "a\na\nb\nb\n";
  const auto pbs = made_up({{"PBS_JOBID", "12[4].server"},
                            {"PBS_NODEFILE", (folder.path() / "nodes").string()},
                            {"PBS_WALLTIME", "600"}});
  const BatchJob job = batch_job(pbs);
  CHECK(job.nodes == 2);
  CHECK(job.tasks == 4);

  struct Case {
    const BatchJob& job;
    const Environment& env;
    const char* answer;
    double left;  // -1 = nothing
  };
  const std::vector<Case> cases = {
      {array, slurm, "1:59\n", 119},
      {array, slurm, "1-02:00:00\n", 93600},
      {array, slurm, "UNLIMITED\n", -1},
      {array, slurm, "", -1},
      {job, pbs,
       "Job Id: 12\n    Resource_List.walltime = 02:00:00\n    resources_used.walltime = "
       "00:30:00\n",
       5400},
      {job, pbs, "    Resource_List.walltime = 02:00:00\n", 7100},
      {job, pbs, "", 500},
  };
  for (const auto& c : cases) {
    std::vector<std::string> asked;
    const auto left = job_seconds_left(
        c.job, c.env,
        [&](const std::vector<std::string>& command) {
          asked = command;
          return std::string(c.answer);
        },
        100);
    CHECK(left.value_or(-1) == c.left);
    CHECK(std::ranges::count(asked, c.job.id) == 1);
  }
  CHECK(duration_s("90") == 90);
  CHECK(duration_s("1:30") == 90);
  CHECK(duration_s("2-12") == 2.5 * 86400);
  CHECK_FALSE(duration_s("1:2:3:4"));
  CHECK_FALSE(duration_s(""));
}

TEST_CASE("a command that hangs is ended") {
  const auto result = output_of({"sh", "-c", "echo begun; exec sleep 60"}, 2);
  CHECK(result.exit_code == 128 + 9);
  CHECK(result.output == "begun\n");
}

TEST_CASE("a parent passes on the exit code of its command") {
  // Also of one that ignores the signal of ending children, as some daemons do.
  for (const auto handler : {SIG_DFL, SIG_IGN}) {
    signal(SIGCHLD, handler);
    ParentSignals signals;
    CHECK(run_as_parent({"sh", "-c", "exit 75"}, signals) == 75);
    CHECK(run_as_parent({"sh", "-c", "kill -9 $$"}, signals) == 137);
    CHECK(run_as_parent({"/no/such/program"}, signals) == static_cast<int>(ExitCode::kDevice));
  }
  ParentSignals signals;
  CHECK(run_as_parent({"sleep", "60"}, signals, [] { return true; }) == 137);
}

TEST_CASE("a command whose end the kernel hides is an error, not a success") {
  signal(SIGCHLD, SIG_IGN);
  CHECK(error_of<DeviceError>([] { output_of({"false"}); }).find("SIGCHLD") != std::string::npos);
  signal(SIGCHLD, SIG_DFL);
}

TEST_CASE("a signal between two commands waits until it is looked at") {
  ParentSignals signals;
  CHECK_FALSE(signals.stop_within(0));
  CHECK(run_as_parent({"true"}, signals) == 0);
  kill(getpid(), SIGUSR1);
  CHECK(signals.stop_within(0));
  CHECK(signals.asked_to_stop());
  // A command of its own has the mask from before.
  CHECK(run_as_parent({"sh", "-c", "kill -TERM $$; exit 3"}, signals) == 128 + SIGTERM);
}

TEST_CASE("a run folder has one user at a time") {
  const ScratchFolder folder;
  {
    const RunLock lock(folder.path());
    CHECK(run_is_locked(folder.path()) == true);
    CHECK(error_of<CheckpointError>([&] {
            RunLock second(folder.path());
          }).find("in use by process") != std::string::npos);
  }
  CHECK(error_of<CheckpointError>([&] { RunLock again(folder.path()); }).empty());
  CHECK(run_is_locked(folder.path()) == false);
  CHECK_FALSE(run_is_locked(folder / "nothing"));
}

TEST_CASE("ranks that start again wait for a lock of ranks that still end") {
  const ScratchFolder folder;
  auto dying = std::make_unique<RunLock>(folder.path());
  std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    dying.reset();
  });
  CHECK(error_of<CheckpointError>([&] { RunLock next(folder.path(), 30); }).empty());
}

TEST_CASE("an absent plug-in is named") {
  CHECK_FALSE(Plugin::exists("libno_such_thing.so"));
  CHECK(error_of<DeviceError>([] { Plugin("libno_such_thing.so"); }).find("libno_such_thing.so") !=
        std::string::npos);
}

TEST_CASE("a run starts again while that may help") {
  for (const int code : {0, 2, 3, 4, 6, 75}) CHECK_FALSE(RestartPolicy::may_pass(code));
  for (const int code : {5, 7, 137, 205, 139}) CHECK(RestartPolicy::may_pass(code));
  CHECK(RestartPolicy::may_pass(9));
  CHECK(RestartPolicy::is_explained(9));
  CHECK_FALSE(RestartPolicy::is_explained(137));
  CHECK(RestartPolicy::pause_s(9) > 0);
  CHECK(RestartPolicy::pause_s(5) == 0);
  RestartPolicy policy(5);
  CHECK_FALSE(policy.again(3, "step-1"));
  CHECK(policy.again(7, ""));
  CHECK(policy.again(7, "step-1"));
  CHECK(policy.again(137, "step-1"));
  CHECK_FALSE(policy.again(7, "step-1"));  // two restarts got no further
  CHECK(policy.left() == 2);
  CHECK(policy.again(7, "step-2"));
  CHECK(policy.again(7, "step-3"));
  CHECK_FALSE(policy.again(7, "step-4"));  // none left
}
