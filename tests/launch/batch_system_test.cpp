#include "chexnet/launch/batch_system.hpp"

#include <ctime>
#include <fstream>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fake_environment.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

std::string no_answer(const std::vector<std::string>&) { return ""; }

using Variables = std::map<std::string, std::string>;

BatchJob whole_job(const Variables& env) {
  return job_with_hosts(fake(env), no_answer);
}

}  // namespace

TEST_CASE("hosts come from LSF, Grid Engine and Flux") {
  using enum BatchJob::Kind;
  const ScratchFolder folder;
  const auto text_of = [](const std::vector<HostSlots>& hosts) {
    std::string text;
    for (const auto& host : hosts)
      text += host.name + ":" + std::to_string(host.slots) + " ";
    return text;
  };
  const auto check = [&](const BatchJob& job, BatchJob::Kind kind,
                         const std::string& hosts, int tasks) {
    CHECK(job.kind == kind);
    CHECK(text_of(job.hosts) == hosts);
    CHECK(job.tasks == tasks);
    CHECK(job.nodes == std::max<int>(1, static_cast<int>(job.hosts.size())));
  };
  std::map<std::string, std::string> lsf = {
      {"LSB_JOBID", "7"}, {"LSB_JOBINDEX", "3"}, {"LSB_HOSTS", "a a b"}};
  check(whole_job(lsf), kLsf, "a:2 b:1 ", 3);
  CHECK(batch_job(fake(lsf)).id == "7[3]");
  lsf["LSB_MCPU_HOSTS"] = "a 4 b 4";
  check(whole_job(lsf), kLsf, "a:4 b:4 ", 8);
  lsf["LSB_DJOB_HOSTFILE"] = folder.write("hosts", "c\nc\nd\nd\n");
  check(whole_job(lsf), kLsf, "c:2 d:2 ", 4);
  lsf["LSB_JOBINDEX"] = "0";
  // Ranks on other hosts ask for less.
  lsf["LSB_DJOB_HOSTFILE"] = "/of/another/host";
  CHECK(batch_job(fake(lsf)).id == "7");

  std::map<std::string, std::string> engine = {{"JOB_ID", "12"},
                                               {"SGE_TASK_ID", "undefined"},
                                               {"NSLOTS", "1"},
                                               {"SGE_JOB_SPOOL_DIR", "/s"}};
  check(whole_job(engine), kGridEngine, "", 1);
  CHECK(batch_job(fake(engine)).start_file == "/s/environment");
  engine["PE_HOSTFILE"] =
      folder.write("pe", "n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 0,0:0,1\n");
  check(whole_job(engine), kGridEngine, "n1:4 n2:2 ", 6);
  CHECK(batch_job(fake(engine)).start_file == engine["PE_HOSTFILE"]);
  engine.erase("SGE_TASK_ID");
  check(whole_job(engine), kGridEngine, "n1:4 n2:2 ", 6);
  // Other programs have a JOB_ID, too.
  CHECK(batch_job(fake({{"JOB_ID", "12"}})).kind == kNone);

  const auto flux = fake({{"FLUX_URI", "local:///x"},
                          {"FLUX_ENCLOSING_ID", "f1"},
                          {"PBS_JOBID", "of the host"}});
  check(job_with_hosts(
            flux, [](const std::vector<std::string>&) { return "n1 n2 n2\n"; }),
        kFlux, "n1:0 n2:0 ", 0);
  CHECK(batch_job(flux).id == "f1");
  CHECK(batch_job(fake({{"FLUX_URI", "x"}, {"FLUX_PROXY_REMOTE", "y"}})).kind ==
        kNone);
}

TEST_CASE("hosts and counts of a job that make no sense are named") {
  const ScratchFolder folder;
  const auto refused = [](const Variables& env, const std::string& what) {
    const std::string error = error_of<ConfigError>([&] { whole_job(env); });
    INFO(error);
    CHECK(error.find("[launch] " + what) != std::string::npos);
    // For ranks that run already nobody looks for hosts.
    CHECK(batch_job(fake(env)).kind != BatchJob::Kind::kNone);
  };
  const auto lsf = [&](const char* name, const std::string& value,
                       const std::string& what) {
    refused({{"LSB_JOBID", "5"}, {name, value}}, name + what);
  };
  lsf("LSB_MCPU_HOSTS", "n1 2 n2", ": 'n2' has no slots");
  lsf("LSB_MCPU_HOSTS", "n1 x n2 2", ": 'x' is no number from 1 to 1048576");
  lsf("LSB_MCPU_HOSTS", "n1 -2 n2 2", ": '-2' is no number");
  lsf("LSB_MCPU_HOSTS", "n1 2 n2 99999999999", ": '99999999999' is no number");
  lsf("LSB_MCPU_HOSTS", "2 n1 2 n2", ": 'n1' is no number");
  lsf("LSB_MCPU_HOSTS", "n1 1048576 n1 1", ": 'n1' has too many slots");
  lsf("LSB_HOSTS", "n1,n1;n2", ": 'n1,n1;n2' is no name of a host");
  const std::string absent = (folder.path() / "absent").string();
  lsf("LSB_DJOB_HOSTFILE", absent, "=" + absent + ": cannot be read");

  const auto engine = [&](const std::string& text, const std::string& what) {
    const std::string file = folder.write("pe", text);
    refused({{"JOB_ID", "1"}, {"SGE_TASK_ID", "1"}, {"PE_HOSTFILE", file}},
            "PE_HOSTFILE=" + file + what);
  };
  engine("n1 2 q\nn2 abc\n", ":2: 'abc' is no number");
  engine("n1 2 q\nn2\n", ":2: 'n2' has no slots");
  engine("n1;n2 2 q\n", ":1: 'n1;n2' is no name of a host");
  engine("\n", ": names no host");
  refused({{"JOB_ID", "1"}, {"SGE_TASK_ID", "1"}, {"PE_HOSTFILE", absent}},
          "PE_HOSTFILE=" + absent + ": cannot be read");
  refused({{"JOB_ID", "1"}, {"SGE_TASK_ID", "1"}, {"NSLOTS", "many"}},
          "NSLOTS: 'many' is no number");

  for (const char* count : {"-4", "0", "abc", "9999999999999", "4 "})
    for (const char* name : {"SLURM_NTASKS", "SLURM_JOB_NUM_NODES"})
      refused({{"SLURM_JOB_ID", "7"}, {name, count}},
              std::string(name) + ": '" + count + "' is no number");
  refused({{"PBS_JOBID", "7"}, {"PBS_NODEFILE", absent}},
          "PBS_NODEFILE=" + absent + ": cannot be read");

  const Variables flux = {{"FLUX_URI", "local:///x"}};
  refused(flux, "flux hostlist --expand local: names no host");
  for (const char* answer : {"n[3-1],[,-x", "n[1-100000000]", "n1 -x"})
    CHECK(error_of<ConfigError>([&] {
            job_with_hosts(fake(flux),
                           [&](const auto&) { return std::string(answer); });
          }).find("is no name of a host") != std::string::npos);
}

TEST_CASE("what scontrol prints is a name of a host on each line") {
  const std::string command = "scontrol show hostnames n[1-2]";
  const auto refused = [&](const std::string& answer) {
    return error_of<ConfigError>([&] {
      hosts_of_run(
          "", fake({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}}),
          [&](const auto&) { return answer; });
    });
  };
  for (const char* name : {"", " ", "n1 n2", " n1", "n1\t", "-n1", "n1\x1b[2J",
                           "n1\r", "n1,n2", "n[1-2]", "n1:4", "n\xc3\xb6"}) {
    INFO(name);
    const std::string error = refused("n1\n" + std::string(name) + "\nn2\n");
    CHECK(error.find(command + ": '") != std::string::npos);
    CHECK(error.find("is no name of a host") != std::string::npos);
  }
  CHECK(refused("").find(command +
                         ": names no host, and SLURM_JOB_NODELIST is set") !=
        std::string::npos);
}

TEST_CASE("a host file goes before what the batch system says") {
  const ScratchFolder folder;
  const Variables env = {{"LSB_JOBID", "5"}, {"LSB_MCPU_HOSTS", "n1 x"}};
  const BatchJob job =
      job_for_mpirun(folder.write("hosts", "a:2\n"), fake(env), no_answer);
  REQUIRE(job.hosts.size() == 1);
  CHECK(job.hosts.front().name == "a");
  CHECK_THROWS_AS(job_for_mpirun("", fake(env), no_answer), ConfigError);
}

TEST_CASE("LSF, Grid Engine and Flux say how long a job may run") {
  struct Case {
    BatchJob::Kind kind;
    const char* answer;
    double left;  // -1 = nothing
  };
  using enum BatchJob::Kind;
  const std::vector<Case> cases = {
      {kLsf, "12:30 L,1500.0/host,45000 second(s)\n", 45000},
      {kLsf, "0:05 L,60.0,3300 second(s)\n", 300},
      // An estimate of the user's is no limit.
      {kLsf, "0:05 E,90.0/host,600 second(s)\n", 4800},
      {kLsf, "00:05:00 L,01:00:00,00:55:00\n", 300},
      {kLsf, "0:05 X,01:00:00,00:55:00\n", 300},
      {kLsf, "-,-,600 second(s)\n", -1},
      {kLsf, "", -1},
      {kGridEngine,
       "job_number: 7\nhard resource_list:         "
       "h_rt=3600,mem=4G\n",
       3500},
      {kGridEngine, "hard resource_list:  mem=4G,h_rt=1:00:00\n", 3500},
      {kGridEngine, "hard resource_list:  mem=4G\n", -1},
      {kFlux, "599\n", 599},
      {kFlux, "4294967295\n", -1},
      {kFlux, "", -1},
  };
  for (const auto& c : cases) {
    INFO(c.answer);
    BatchJob job;
    job.kind = c.kind;
    job.id = "7";
    const auto left = job_seconds_left(
        job, fake({}),
        [&](const std::vector<std::string>&) { return std::string(c.answer); },
        100);
    CHECK(left.value_or(-1) == c.left);
  }
}

TEST_CASE("a batch job knows its id, shape and time left") {
  CHECK(batch_job(fake({})).kind == BatchJob::Kind::kNone);
  const auto slurm = fake({{"SLURM_JOB_ID", "77"},
                           {"SLURM_ARRAY_JOB_ID", "70"},
                           {"SLURM_ARRAY_TASK_ID", "3"},
                           {"SLURM_JOB_NUM_NODES", "2"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_CPUS_ON_NODE", "40"},
                           {"SLURM_RESTART_COUNT", "1"}});
  const BatchJob array = batch_job(slurm);
  CHECK(array.id == "70_3");
  CHECK(job_with_hosts(slurm, no_answer).nodes == 2);
  CHECK(job_with_hosts(slurm, no_answer).tasks == 8);
  CHECK(array.host_cpus == 40);
  CHECK(array.restarts == 1);
  const auto gpus = fake({{"SLURM_JOB_ID", "77"},
                          {"SLURM_CPUS_ON_NODE", "11111111111"},
                          {"SLURM_GPUS_ON_NODE", "gpu:4(x2)"}});
  // Where no int holds a number it is as if it were not there.
  CHECK(batch_job(gpus).host_cpus == 0);
  CHECK(batch_job(gpus).host_gpus == 4);
  CHECK(job_with_hosts(gpus, no_answer).nodes == 1);
  CHECK(job_with_hosts(gpus, no_answer).tasks == 0);

  const ScratchFolder folder;
  std::ofstream(folder.path() / "nodes") << "a\na\nb\nb\n";
  const auto pbs = fake({{"PBS_JOBID", "12[4].server"},
                         {"PBS_NODEFILE", (folder.path() / "nodes").string()},
                         {"PBS_WALLTIME", "600"}});
  const BatchJob job = job_with_hosts(pbs, no_answer);
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
       "Job Id: 12\n    Resource_List.walltime = 02:00:00\n    "
       "resources_used.walltime = "
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
  // Where there is no squeue, as in a container; else squeue's answer counts.
  const auto at_end =
      fake({{"SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + 600)}});
  const auto left = job_seconds_left(array, at_end, no_answer, 100);
  CHECK(left.value_or(-1) == Approx(600).margin(60));
  CHECK_FALSE(job_seconds_left(
      array, at_end, [](const auto&) { return std::string("UNLIMITED"); },
      100));
  for (const char* end : {"soon", "0", "-5", "1e9"})
    CHECK_FALSE(job_seconds_left(array, fake({{"SLURM_JOB_END_TIME", end}}),
                                 no_answer, 100));
  CHECK(duration_s("90") == 90);
  CHECK(duration_s("1:30") == 90);
  CHECK(duration_s("2-12") == 2.5 * 86400);
  CHECK(duration_s("36:00:00") == 36 * 3600);
  for (const char* text :
       {"", "1:2:3:4", "-1", "1-2-3", "1:99:99", "1:", ":1", "1::2", "2-",
        "99999999999:00:00", "999999999999999", "2147483648", "1 2", "+3"})
    CHECK_FALSE(duration_s(text));
}

TEST_CASE("the hosts of a run come from its host file or its batch system") {
  const ScratchFolder folder;
  std::vector<std::string> asked;
  std::string answer;
  const auto hosts = [&](const std::string& hostfile,
                         const std::map<std::string, std::string>& env) {
    asked.clear();
    std::string text;
    for (const auto& host :
         hosts_of_run(hostfile, fake(env), [&](const auto& command) {
           asked = command;
           return answer;
         }))
      text += host.name + ":" + std::to_string(host.slots) + " ";
    return text;
  };
  const Variables slurm = {{"SLURM_JOB_ID", "7"},
                           {"SLURM_JOB_NODELIST", "node[1-2],gpu7"}};
  answer = "node1\nnode2\ngpu7\n";
  CHECK(hosts("", slurm) == "node1:0 node2:0 gpu7:0 ");
  CHECK(asked.back() == "node[1-2],gpu7");
  CHECK(hosts(folder.write("hosts", "a slots=2\nb:3\n"), slurm) == "a:2 b:3 ");
  CHECK(asked.empty());

  CHECK(hosts("", {{"PBS_JOBID", "7"},
                   {"PBS_NODEFILE", folder.write("nodes", "a\na\nb\n")}}) ==
        "a:2 b:1 ");
  CHECK(hosts("", {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a 2 b 2"}}) ==
        "a:2 b:2 ");
  CHECK(hosts("", {{"JOB_ID", "7"},
                   {"SGE_TASK_ID", "undefined"},
                   {"PE_HOSTFILE", folder.write("pe", "a 1 q\nb 1 q\n")}}) ==
        "a:1 b:1 ");
  CHECK(asked.empty());
  answer = "n1 n2\n";
  CHECK(hosts("", {{"FLUX_URI", "local:///x"}}) == "n1:0 n2:0 ");
  CHECK(asked.front() == "flux");
  CHECK(hosts("", {}).empty());

  // Slurm's are known to mpirun.
  CHECK(whole_job(slurm).hosts.empty());
}
