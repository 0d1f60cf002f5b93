// What a JobRequest puts into the script of its batch system in templates/. The
// shell code is there, and only there; here are values: each is one line, and
// each word that a shell sees is quoted by command_text().
#include "chexnet/tools/jobs/job_script.hpp"

#include <algorithm>
#include <cassert>

#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/restart_loop.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "job_options.hpp"
#include "script_template.hpp"

namespace chexnet {
namespace {

std::string shell(const std::string& word) { return command_text({word}); }

// No option of the commands that get it.
std::string folder_word(const std::string& folder) {
  return shell(folder.starts_with('-') ? "./" + folder : folder);
}

std::string shell_words(const std::vector<std::string>& words) {
  return words.empty() ? "" : command_text(words);
}

// The task's number where the job is an array; a resubmitted task of PBS is a
// separate job.
std::string task_index(const JobRequest& request) {
  if (request.scheduler == Scheduler::kSlurm) return "${SLURM_ARRAY_TASK_ID:-}";
  return request.points.size() == 1 ? "0"
                                    : "${CHEXNET_TASK:-${PBS_ARRAY_INDEX:-}}";
}

// Of a sweep: each task takes its folder and assignments.
std::string task_lines(const JobRequest& request) {
  if (request.points.empty()) return "";
  const std::string index = task_index(request);
  std::string text = "case " + index + " in\n";
  for (size_t i = 0; i < request.points.size(); ++i) {
    const auto& point = request.points[i];
    text += "  " + std::to_string(i) +
            ") run=" + folder_word(point.run_folder) + "; arguments+=(";
    for (size_t a = 0; a < point.assignments.size(); ++a)
      text += (a == 0 ? "--set " : " --set ") + shell(point.assignments[a]);
    text += ") ;;\n";
  }
  return text + "  *) echo \"no task of number " + index +
         " in this sweep\" >&2; exit 2 ;;\nesac\n";
}

// The codes after which a job asks for another start, as a pattern of `case`
// and in words.
void put_exit_codes(TemplateValues& values) {
  std::string pattern, words;
  for (const auto& meaning : exit_meanings()) {
    if (meaning.after == AfterExit::kNobody) continue;
    const std::string code = std::to_string(static_cast<int>(meaning.code));
    pattern += (pattern.empty() ? "" : " | ") + code;
    words += "#   " + code + " " + meaning.kind + "\n";
  }
  assert(!pattern.empty());
  values.texts["CODE_PATTERN"] = pattern;
  values.lines["CODES"] = words;
  values.texts["STOPPED"] =
      std::to_string(static_cast<int>(ExitCode::kRequeue));
}

// What starts the program inside a container, or nothing. --nv shows GPUs.
std::vector<std::string> apptainer_words(const JobRequest& request) {
  std::vector<std::string> words = {"apptainer", "exec"};
  if (request.gpus_per_node > 0) words.emplace_back("--nv");
  words.insert(words.end(), {"--pwd", request.working_folder});
  for (const auto& mount : request.mounts)
    words.insert(words.end(), {"--bind", mount.source + ":" + mount.target +
                                             (mount.read_only ? ":ro" : "")});
  words.push_back(request.container);
  return words;
}

// Options that Pyxis adds to srun; it has Enroot unpack the image.
std::vector<std::string> pyxis_options(const JobRequest& request) {
  std::string mounts;
  for (const auto& mount : request.mounts)
    mounts += (mounts.empty() ? "" : ",") + mount.source + ":" + mount.target +
              (mount.read_only ? ":ro" : "");
  return {"--container-image=" + pyxis_image(request.container),
          "--container-mounts=" + mounts,
          "--container-workdir=" + request.working_folder};
}

// What makes a step of Slurm of the program after it; a step does not inherit
// -c from Slurm 22.05 on.
std::string step_text(const JobRequest& request) {
  if (request.launcher != JobLauncher::kSrun) return "";
  std::string text =
      "srun --mpi=" + request.srun_mpi + " -c \"${SLURM_CPUS_PER_TASK:-1}\" ";
  if (!request.container.empty() && !is_sif(request.container))
    text += command_text(pyxis_options(request)) + " ";
  return text;
}

void check_container(const JobRequest& request) {
  if (request.container.empty()) return;
  const bool steps = request.launcher != JobLauncher::kMpirun;
  if (!is_sif(request.container) &&
      (request.scheduler != Scheduler::kSlurm || !steps))
    throw ConfigError(
        "[submit] --container {}: an image of a registry is started by srun, "
        "where Slurm has Pyxis. Hint: --scheduler slurm --launcher srun, or a "
        ".sif file for Apptainer",
        request.container);
  if (is_sif(request.container) && !steps && request.nodes > 1)
    throw ConfigError(
        "[submit] --container {}: mpirun inside a container starts no ranks on "
        "other hosts. Hint: --launcher srun (Slurm), or --nodes 1",
        request.container);
}

void check_launcher(const JobRequest& request) {
  if (request.launcher == JobLauncher::kSrun &&
      request.scheduler != Scheduler::kSlurm)
    throw ConfigError(
        "[submit] --launcher srun is of Slurm. Hint: --launcher mpirun");
}

// Each batch system reads quotes in its options in another way; none has names
// with any.
void refuse_several_words(const JobRequest& request) {
  const auto check = [](const std::string& key, const std::string& value) {
    const auto odd = std::ranges::find_if(value, [](unsigned char c) {
      return c <= ' ' || c == 0x7f || c == '\'' || c == '"' || c == '`' ||
             c == '\\';
    });
    if (odd == value.end()) return;
    throw ConfigError(
        "[submit] --{} (in a site file {}) '{}': holds a blank, quote, "
        "backslash or line break. Hint: one name, as the batch system lists it",
        key, key, value.substr(0, value.find_first_of("\n\r")));
  };
  check("account", request.account);
  check("partition", request.partition);
  check("qos", request.qos);
  check("constraint", request.constraint);
}

void check_memory(const std::string& memory) {
  const size_t unit = memory.find_first_not_of("0123456789");
  const bool is_size =
      unit != 0 && memory.front() != '0' && unit != std::string::npos &&
      unit + 1 == memory.size() &&
      std::string("KMGT").find(memory[unit]) != std::string::npos;
  if (!is_size)
    throw ConfigError(
        "[submit] --mem (in a site file mem) '{}': is no size. Hint: memory of "
        "a host, as 64G",
        memory);
}

void refuse_unknown_to_pbs(const JobRequest& request) {
  if (request.scheduler != Scheduler::kPbs) return;
  for (const auto& [key, value] :
       {std::pair("qos", request.qos), {"constraint", request.constraint}})
    if (!value.empty())
      throw ConfigError(
          "[submit] --{} (in a site file {}) is of Slurm. Hint: --queue, or "
          "--line with what the center's qsub takes for it",
          key, key);
}

void refuse_line_breaks(const JobRequest& request) {
  std::vector<std::string> values = {request.time, request.container,
                                     request.working_folder};
  for (const auto* more :
       {&request.program, &request.lines, &request.setup, &request.variables})
    values.insert(values.end(), more->begin(), more->end());
  for (const auto& value : values)
    if (value.find_first_of("\n\r") != std::string::npos)
      throw ConfigError(
          "[submit] '{}…': a value holds a line break. Hint: one list item for "
          "each line",
          value.substr(0, value.find_first_of("\n\r")));
}

}  // namespace

// pbsnodes: Grid Engine has a qsub, too.
Scheduler scheduler_here() {
  const bool pbs = in_path("sbatch").empty() && !in_path("pbsnodes").empty();
  return pbs ? Scheduler::kPbs : Scheduler::kSlurm;
}

int total_ranks(const JobRequest& request) {
  return request.nodes * ranks_per_node(request);
}

namespace {

void refuse_more_than_a_job(int64_t first, int64_t second, const char* of_what,
                            const char* factors, const char* keys) {
  if (first * second <= kMostOfAJob) return;
  throw ConfigError(
      "[submit] the job would have {} x {} {} ({}), more than {}. Hint: {}",
      first, second, of_what, factors, kMostOfAJob, keys);
}

}  // namespace

void agree_on_ranks(const LaunchConfig& launch, JobRequest& request) {
  const auto wanted = static_cast<int>(launch.ranks);
  const auto wanted_per_node = static_cast<int>(launch.ranks_per_node);
  const bool unsaid = request.ranks_per_node == 0 && request.gpus_per_node == 0;
  if (unsaid && wanted_per_node > 0)
    request.ranks_per_node = wanted_per_node;
  else if (unsaid && wanted % request.nodes == 0)
    request.ranks_per_node = wanted / request.nodes;
  refuse_more_than_a_job(request.nodes, ranks_per_node(request), "ranks",
                         "hosts x ranks per host",
                         "--nodes, --ranks-per-node or --gpus-per-node");
  refuse_more_than_a_job(ranks_per_node(request), request.cpus_per_rank,
                         "cores on each host", "ranks x cores per rank",
                         "--ranks-per-node or --cpus-per-rank");
  const bool uses_gpus =
      launch.device != DeviceKind::kCpu && request.gpus_per_node > 0;
  const int ranks = ranks_per_node(request);
  if (uses_gpus && ranks != request.gpus_per_node)
    throw ConfigError(
        "[submit] {} would {} {} on each host. Hint: a rank for each GPU: "
        "leave out "
        "--ranks-per-node, or --gpus-per-node {}",
        counted(ranks, "rank"),
        ranks > request.gpus_per_node ? "share" : "not use all of",
        counted(request.gpus_per_node, "GPU"), ranks);

  const auto refuse = [&](const std::string& key, int value) {
    throw ConfigError(
        "[submit] {} = {}, and the job would have {} x {} ranks (hosts x ranks "
        "per host). Hint: --nodes and --ranks-per-node that agree, or --set "
        "{}=auto",
        key, value, request.nodes, ranks_per_node(request), key);
  };
  if (wanted > 0 && wanted != total_ranks(request))
    refuse("launch.ranks", wanted);
  if (wanted == 0 && wanted_per_node > 0 &&
      wanted_per_node != ranks_per_node(request))
    refuse("launch.ranks_per_node", wanted_per_node);
  request.ranks_per_node = ranks_per_node(request);
}

int signal_lead_s(double job_s, double stop_margin_s) {
  constexpr double kLongest_s = 60, kShareOfJob = 0.1;
  return std::max(1, static_cast<int>(std::min(
                         {kLongest_s, stop_margin_s, kShareOfJob * job_s})));
}

std::optional<double> limit_s(const std::string& time) {
  const bool minutes = time.find_first_of(":-") == std::string::npos;
  const auto seconds = duration_s(minutes ? time + ":00" : time);
  return seconds && *seconds > 0 ? seconds : std::nullopt;
}

std::string job_script(const JobRequest& request) {
  refuse_several_words(request);
  refuse_line_breaks(request);
  if (!request.memory.empty()) check_memory(request.memory);
  refuse_unknown_to_pbs(request);
  check_launcher(request);
  check_container(request);

  std::vector<std::string> program = request.program;
  const bool sif = !request.container.empty() && is_sif(request.container);
  if (!request.container.empty()) program = {"chexnet-train"};
  if (sif) {
    auto words = apptainer_words(request);
    words.insert(words.end(), program.begin(), program.end());
    program = std::move(words);
  }
  TemplateValues values;
  values.lines["DIRECTIVES"] = directive_lines(request);
  for (const auto& line : request.setup) values.lines["SETUP"] += line + "\n";
  values.lines.try_emplace("SETUP");
  values.lines["TASKS"] = task_lines(request);
  values.texts["STEP"] = step_text(request);
  values.texts["PROGRAM"] = shell_words(program);
  values.texts["ARGUMENTS"] = shell_words(request.arguments);
  values.texts["RUN_FOLDER"] = folder_word(request.run_folder);
  values.texts["MAX_REQUEUES"] = std::to_string(request.max_requeues);
  values.texts["AT_SAME_CHECKPOINT"] = std::to_string(RestartLoop::kSamePlace);
  const QsubOptions qsub = qsub_options(request);
  values.texts["QSUB_OPTIONS"] = qsub.words;
  values.texts["QSUB_VARIABLES"] =
      qsub.variables.empty() ? "" : shell(qsub.variables);
  put_exit_codes(values);
  return filled(
      request.scheduler == Scheduler::kSlurm ? kSlurmScript : kPbsScript,
      values);
}

}  // namespace chexnet
