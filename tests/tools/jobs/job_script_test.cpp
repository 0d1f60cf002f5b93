#include "chexnet/tools/jobs/job_script.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/launch/child_process.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("a sweep is the product of its lists and seeds") {
  const auto points = sweep_points(
      {"train.lr=1e-3,3e-4", "data.findings=[Mass,Nodule],[Edema]"}, 2,
      "runs/s");
  REQUIRE(points.size() == 8);
  CHECK(points[0].run_folder == "runs/s/lr=1e-3_findings=[Mass,Nodule]_seed=1");
  CHECK(points[7].assignments ==
        std::vector<std::string>{"train.lr=3e-4", "data.findings=[Edema]",
                                 "run.seed=2"});
  CHECK(error_of<ConfigError>([] {
          sweep_points({"data.folds=3,4"}, 0, "r");
        }).find("Hint: " + written_instead("data.folds")) != std::string::npos);
  CHECK(sweep_points({"data.fold=1/5,2/5"}, 0, "r")[1].run_folder ==
        "r/fold=2-5");
  CHECK(error_of<ConfigError>([] {
          sweep_points({"train.lrr=1"}, 0, "r");
        }).find("train.lr") != std::string::npos);
  CHECK(has(
      error_of<ConfigError>([] { sweep_points({"train.lr=1,,2"}, 0, "r"); }),
      "empty value"));
  CHECK(has(error_of<ConfigError>([] { sweep_points({"train.lr"}, 0, "r"); }),
            "no '='"));
}

TEST_CASE("a key is swept once, by --seeds too") {
  CHECK(has(error_of<ConfigError>([] {
              sweep_points({"train.lr=1", "train.lr=3,4"}, 0, "r");
            }),
            "train.lr is swept twice"));
  CHECK(has(error_of<ConfigError>([] { sweep_points({"run.seed=5"}, 2, "r"); }),
            "run.seed is swept twice"));
}

TEST_CASE("memory and hosts of one's own are asked in each system's words") {
  JobRequest request;
  request.memory = "64G";
  request.exclusive = true;
  request.qos = "long";
  request.constraint = "v100&ib";
  const std::string slurm = job_script(request);
  for (const char* line :
       {"#SBATCH --mem=64G\n", "#SBATCH --exclusive\n", "#SBATCH --qos=long\n",
        "#SBATCH --constraint=v100&ib\n"})
    CHECK(has(slurm, line));
  request.scheduler = Scheduler::kPbs;
  const auto refusal = [&] {
    return error_of<ConfigError>([&] { job_script(request); });
  };
  CHECK(has(refusal(), "--qos (in a site file qos) is of Slurm"));
  request.qos.clear();
  CHECK(has(refusal(), "--constraint"));
  request.constraint.clear();
  const std::string pbs = job_script(request);
  CHECK(has(pbs, ":mem=64gb\n"));
  CHECK(has(pbs, "#PBS -l place=scatter:exclhost\n"));
  for (const char* odd : {"64", "0G", "G", "6 G", "64GB", "-1G"}) {
    request.memory = odd;
    CHECK(has(refusal(), "is no size. Hint: memory of a host, as 64G"));
  }
}

TEST_CASE("a site file fills a request and is strict") {
  const ScratchFolder folder;
  const auto read = [&](const std::string& text) {
    std::ofstream(folder.path() / "site.yaml") << text;
    JobRequest request;
    read_site_file(folder.path() / "site.yaml", request);
    return request;
  };
  const JobRequest request = read(
      "scheduler: pbs\naccount: chest\npartition: gpu\ngpus_per_node: "
      "4\ncpus_per_rank: 10\n"
      "setup: ['module load openmpi']\nlines: ['-l place=excl']\nlauncher: "
      "srun\n");
  CHECK(request.scheduler == Scheduler::kPbs);
  CHECK(request.gpus_per_node == 4);
  CHECK(request.setup == std::vector<std::string>{"module load openmpi"});
  CHECK(has(error_of<ConfigError>([&] { read("acount: x\n"); }),
            "site.yaml:1: 'acount' is unknown"));
  for (const std::string key :
       {"nodes", "ranks_per_node", "gpus_per_node", "cpus_per_rank"})
    for (const char* value :
         {"0", "-1", "two", "1.5", "", "100001", "99999999999"}) {
      INFO(key << ": " << value);
      CHECK(has(error_of<ConfigError>([&] { read(key + ": " + value + "\n"); }),
                "site.yaml:1: '" + key + "' "));
    }
  CHECK(read("nodes: 100000\n").nodes == 100000);
  CHECK(read("max_requeues: 0\n").max_requeues == 0);
  CHECK(has(error_of<ConfigError>([&] { read("max_requeues: 100001\n"); }),
            "a whole number from 0 to 100000"));
  CHECK(has(error_of<ConfigError>([&] { read("setup: x\n"); }), "is no list"));
}

TEST_CASE("a run folder is no option of the commands that get it") {
  JobRequest request;
  request.run_folder = "-x";
  CHECK(has(job_script(request), "\nrun=./-x\n"));
}

TEST_CASE("what a site sets up may read variables that are not set") {
  JobRequest request;
  request.scheduler = GENERATE(Scheduler::kSlurm, Scheduler::kPbs);
  request.setup = {
      R"([ -n "$CHEXNET_NOBODY_SETS_THIS" ] || echo set up >seen)"};
  request.program = {"bash", "-c", "exit 2"};
  const ScratchFolder folder;
  const std::string job = folder.write("job", job_script(request));
  const std::string here = folder.path().string();
  CHECK(output_of({"env", "-C", here, "PBS_O_WORKDIR=" + here, "bash", job})
            .exit_code == 2);
  CHECK(std::filesystem::exists(folder / "seen"));
}

TEST_CASE("job scripts say what was asked for") {
  JobRequest request;
  request.nodes = 2;
  request.gpus_per_node = 4;
  request.cpus_per_rank = 10;
  request.account = "chest";
  request.partition = "gpu";
  request.arguments = {"a b.yaml", "--set", "train.lr=1e-3"};
  request.run_folder = "runs/x";
  const std::string slurm = job_script(request);
  for (const char* part :
       {"#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=4\n",
        "#SBATCH --cpus-per-task=10\n", "#SBATCH --gpus-per-node=4\n",
        "#SBATCH --account=chest\n", "#SBATCH --partition=gpu\n",
        "#SBATCH --open-mode=append\n",
        "arguments=(train 'a b.yaml' --set train.lr=1e-3)\n", "run=runs/x\n"})
    CHECK(has(slurm, part));
  CHECK_FALSE(has(slurm, "--array"));
  request.launcher = JobLauncher::kSrun;
  CHECK(has(job_script(request),
            "srun --mpi=pmix -c \"${SLURM_CPUS_PER_TASK:-1}\""));
  request.srun_mpi = "pmi2";
  CHECK(has(job_script(request), "command=(srun --mpi=pmi2 -c "));

  request.scheduler = Scheduler::kPbs;
  CHECK(has(error_of<ConfigError>([&] { job_script(request); }),
            "--launcher srun is of Slurm"));
  request.launcher = JobLauncher::kMpirun;
  request.points = sweep_points({"train.lr=1,2"}, 0, "runs/s");
  const std::string pbs = job_script(request);
  for (const char* part :
       {"#PBS -l select=2:ncpus=40:mpiprocs=4:ompthreads=10:ngpus=4\n",
        "#PBS -J 0-1\n", "#PBS -A chest\n", "cd \"${PBS_O_WORKDIR:-.}\"",
        "1) run=runs/s/lr=2; arguments+=(--set train.lr=2) ;;"})
    CHECK(has(pbs, part));
  // An array of one is none; what a site comments out stays so in both heads.
  request.points = sweep_points({"train.lr=1"}, 0, "runs/s");
  request.lines = {"## see wiki", "##PBS -l software=foo", "#PBS\t-l a=b"};
  const std::string single = job_script(request);
  for (const char* part : {"\n## see wiki\n", "\n#PBS\t-l a=b\n",
                           "case 0 in\n  0) run=", " -l a=b)\n"})
    CHECK(has(single, part));
  request.variables = {"NIH"};
  request.lines = {"## no -v here"};
  const std::string with_variables = job_script(request);
  for (const char* part : {"\n#PBS -v NIH\n", "\n## no -v here\n"})
    CHECK(has(with_variables, part));
  request.variables = {};
  for (const char* part : {"#PBS -J", "wiki -l", "software=foo)", "'##"})
    CHECK_FALSE(has(single, part));
  request.lines = {};
  request.points = sweep_points({"train.lr=1,2"}, 0, "runs/s");
  // A number alone is minutes, though PBS itself takes it for seconds.
  for (const auto& [time, walltime] :
       {std::pair{"90", "01:30:00"}, std::pair{"1-0", "24:00:00"},
        std::pair{"5-00:00:30", "120:00:30"}, std::pair{"1:30", "00:01:30"}}) {
    request.time = time;
    CHECK(has(job_script(request),
              "#PBS -l walltime=" + std::string(walltime) + "\n"));
  }
}

TEST_CASE("a time limit has one meaning, and none is no limit") {
  CHECK(limit_s("90") == 5400);
  CHECK(limit_s("1:30") == 90);
  CHECK(limit_s("1-12") == 36 * 3600);
  for (const char* text : {"0", "00:00:00", "-1", "1d", "24h", "nan", "1-2-3",
                           "2147483648", "999999999", "99999999999:00:00"})
    CHECK_FALSE(limit_s(text));
}

TEST_CASE("Slurm's warning fits short jobs and the margin of a stop") {
  CHECK(signal_lead_s(86400, 120) == 60);
  CHECK(signal_lead_s(86400, 20) == 20);
  CHECK(signal_lead_s(60, 120) == 6);
  CHECK(signal_lead_s(60, 0) == 1);
  JobRequest request;
  request.signal_s = 6;
  CHECK(has(job_script(request), "#SBATCH --signal=B:USR1@6\n"));
}

TEST_CASE("a value with a line break makes no line of a script") {
  const std::string evil = "x\nrm -rf /";
  const auto refused = [](const JobRequest& request) {
    return has(error_of<ConfigError>([&] { job_script(request); }),
               "line break");
  };
  JobRequest request;
  for (auto* value : {&request.account, &request.partition}) {
    *value = evil;
    CHECK(refused(request));
    value->clear();
  }
  for (auto* values : {&request.lines, &request.setup, &request.program}) {
    values->push_back(evil);
    CHECK(refused(request));
    values->pop_back();
  }
  CHECK_FALSE(refused(request));
}

TEST_CASE("a job's ranks, and a program of several words") {
  JobRequest request;
  request.nodes = 8;
  request.gpus_per_node = 4;
  CHECK(total_ranks(request) == 32);
  request.program = {"/b/run", "--torch", "/a b/torch"};
  CHECK(has(job_script(request), "program=(/b/run --torch '/a b/torch')\n"));
  CHECK(has(job_script(request),
            "command=(\"${program[@]}\" \"${arguments[@]}\""));
}

TEST_CASE("a job has the ranks that its config says, or is refused") {
  struct Row {
    int nodes, ranks_per_node, gpus_per_node;
    int64_t ranks, per_node;  // of the config
    int settled;              // ranks per host; 0: refused
  };
  const Row row = GENERATE(
      Row{2, 0, 0, 0, 0, 1}, Row{1, 0, 0, 4, 0, 4}, Row{2, 0, 0, 4, 0, 2},
      Row{2, 0, 0, 0, 3, 3}, Row{3, 0, 0, 4, 0, 0}, Row{2, 0, 4, 8, 0, 4},
      Row{2, 0, 4, 2, 0, 0}, Row{2, 3, 0, 4, 0, 0}, Row{2, 3, 0, 0, 3, 3},
      Row{2, 0, 4, 0, 2, 0}, Row{2, 0, 4, 0, 0, 4});
  LaunchConfig launch;
  launch.ranks = row.ranks;
  launch.ranks_per_node = row.per_node;
  JobRequest request;
  request.nodes = row.nodes;
  request.ranks_per_node = row.ranks_per_node;
  request.gpus_per_node = row.gpus_per_node;
  const std::string error =
      error_of<ConfigError>([&] { agree_on_ranks(launch, request); });
  CHECK(error.empty() == (row.settled > 0));
  if (error.empty()) CHECK(request.ranks_per_node == row.settled);
}

TEST_CASE("ranks of a job do not share GPUs") {
  JobRequest request;
  request.gpus_per_node = 2;
  request.ranks_per_node = 4;
  LaunchConfig launch;
  const auto error = [&] {
    return error_of<ConfigError>([&] { agree_on_ranks(launch, request); });
  };
  CHECK(has(error(), "4 ranks would share 2 GPUs"));
  request.ranks_per_node = 1;
  CHECK(has(error(), "1 rank would not use all of 2 GPUs"));
  launch.device = DeviceKind::kCpu;  // the GPUs are not for them
  CHECK(error().empty());
  CHECK(has(job_script(request), "--ntasks-per-node=1\n"));
}

TEST_CASE("a job of more ranks or cores than any machine has is refused") {
  JobRequest request;
  request.nodes = 100'000;
  const auto error = [&] {
    return error_of<ConfigError>([&] { agree_on_ranks({}, request); });
  };
  CHECK(error().empty());
  request.ranks_per_node = 100'000;  // their product is no int
  CHECK(error().find("100000 x 100000 ranks") != std::string::npos);
  request.nodes = 1;
  CHECK(error().empty());
  request.cpus_per_rank = 2;
  CHECK(error().find("100000 x 2 cores on each host") != std::string::npos);
}

TEST_CASE(
    "two restarts at one place are enough, of a program that never made its "
    "folder too") {
  JobRequest request;
  request.program = {"bash", "-c", "exit 5"};
  const auto [scheduler, restarts] =
      GENERATE(std::pair{Scheduler::kSlurm, "SLURM_RESTART_COUNT="},
               std::pair{Scheduler::kPbs, "CHEXNET_SUBMISSION="});
  request.scheduler = scheduler;

  const ScratchFolder folder;
  request.run_folder = (folder / "a run").string();
  const std::string job = folder.write("job", job_script(request));
  const std::string stand_in =
      "#!/bin/sh\necho \"$@\" >>" + (folder / "asked").string() + "\n";
  for (const char* program : {"bin/scontrol", "bin/qsub"})
    std::filesystem::permissions(folder.write(program, stand_in),
                                 std::filesystem::perms::owner_all);
  const std::string path =
      "PATH=" + (folder / "bin").string() + ":" + std::getenv("PATH");

  const auto asked = [&](const std::vector<std::string>& count) {
    std::vector<std::string> command = {"env"};
    command.insert(command.end(), count.begin(), count.end());
    command.insert(command.end(), {path, "SLURM_JOB_ID=7", "bash", job});
    CHECK(output_of(command).exit_code == 5);
    std::ifstream stream(folder / "asked");
    return std::count(std::istreambuf_iterator<char>(stream), {}, '\n');
  };
  const std::array expected = {1, 2, 2, 2};
  for (size_t start = 0; start < expected.size(); ++start)
    CHECK(asked({restarts + std::to_string(start)}) == expected[start]);
  // Of the same folder, but another job.
  CHECK(asked({"-u", "SLURM_RESTART_COUNT", "-u", "CHEXNET_SUBMISSION"}) == 3);
  CHECK(std::filesystem::exists(folder / "a run/job.pbs") ==
        (scheduler == Scheduler::kPbs));
}

TEST_CASE("a job whose run a STOP file ends is not started again") {
  const ScratchFolder folder;
  JobRequest request;
  request.scheduler = GENERATE(Scheduler::kSlurm, Scheduler::kPbs);
  request.run_folder = (folder / "run").string();
  const bool stops = GENERATE(false, true);
  request.program = {"bash", "-c",
                     std::string(stops ? "touch run/STOP; " : "") + "exit 75"};
  const std::string job = folder.write("job", job_script(request));
  folder.write("run/log", "");
  for (const char* program : {"bin/scontrol", "bin/qsub"})
    std::filesystem::permissions(folder.write(program, "#!/bin/sh\n>asked\n"),
                                 std::filesystem::perms::owner_all);
  CHECK(output_of(
            {"env", "-u", "SLURM_RESTART_COUNT", "-u", "CHEXNET_SUBMISSION",
             "-C", folder.path().string(),
             "PATH=" + (folder / "bin").string() + ":" + std::getenv("PATH"),
             "SLURM_JOB_ID=7", "bash", job})
            .exit_code == 75);
  CHECK(std::filesystem::exists(folder / "asked") != stops);
}

TEST_CASE("PBS gets a job's own options and variables at its next start too") {
  JobRequest request;
  request.scheduler = Scheduler::kPbs;
  request.program = {"bash", "-c", "exit 75"};
  request.lines = {"-v NIH=\"/data/chest xray\"", "-M 'a@b.org c@d.org'"};
  const ScratchFolder folder;
  request.run_folder = (folder / "run").string();
  const std::string job = folder.write("job", job_script(request));
  const int code = GENERATE(0, 171);
  std::filesystem::permissions(
      folder.write("bin/qsub", "#!/bin/sh\nprintf '[%s]' \"$@\"\nexit " +
                                   std::to_string(code) + "\n"),
      std::filesystem::perms::owner_all);
  const auto ran = output_of(
      {"env", "-u", "CHEXNET_SUBMISSION",
       "PATH=" + (folder / "bin").string() + ":" + std::getenv("PATH"), "bash",
       job});
  CHECK(ran.exit_code == 75);
  const std::string script = request.run_folder + "/job.pbs]";
  CHECK(ran.output.find("[-M][a@b.org c@d.org][-v][NIH=/data/chest xray,"
                        "CHEXNET_SUBMISSION=1,CHEXNET_TASK=][" +
                        script) != std::string::npos);
  CHECK((ran.output.find("submitted again, 1 of") != std::string::npos) ==
        (code == 0));
}

TEST_CASE("PBS gives a job the variables that its config names") {
  JobRequest request;
  request.variables = {"NIH", "WEIGHTS"};
  CHECK_FALSE(has(job_script(request), "NIH"));  // sbatch gives all of them
  request.scheduler = Scheduler::kPbs;
  const auto says = [&](const std::string& head, const std::string& again) {
    const std::string script = job_script(request);
    INFO(script);
    CHECK(has(script, "\n#PBS " + head + "\n"));
    CHECK(has(script, "\nvariables=" + again + "CHEXNET_SUBMISSION="));
  };
  says("-v NIH,WEIGHTS", "NIH,WEIGHTS,");
  // qsub takes one list alone.
  request.lines = {"-M a@b.org -v SEED=1"};
  says("-M a@b.org -v NIH,WEIGHTS,SEED=1", "NIH,WEIGHTS,SEED=1,");
  request.lines = {"-v A=1", "-v B=2"};
  says("-v NIH,WEIGHTS,B=2", "NIH,WEIGHTS,A=1,NIH,WEIGHTS,B=2,");
  request.lines = {"#PBS -vSEED=1"};
  says("-vNIH,WEIGHTS,SEED=1", "NIH,WEIGHTS,SEED=1,");
  request.variables = {};
  says("-vSEED=1", "SEED=1,");
}

TEST_CASE("an account or partition is one plain word") {
  for (const char* value : {"a b", "a\tb", "a'b", "a\"b", "a`b", "a\\b", "a\nb",
                            "a\x7f"
                            "b",
                            " "})
    for (const auto member : {&JobRequest::account, &JobRequest::partition})
      for (const auto scheduler : {Scheduler::kSlurm, Scheduler::kPbs}) {
        JobRequest request;
        request.scheduler = scheduler;
        request.*member = value;
        CHECK(has(error_of<ConfigError>([&] { job_script(request); }),
                  "holds a blank, quote, backslash or line break"));
      }
  JobRequest request;
  request.account = "proj-1_a.b/c@x:y";
  CHECK(has(job_script(request), "#SBATCH --account=proj-1_a.b/c@x:y\n"));
}
