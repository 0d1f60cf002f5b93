// What a JobRequest puts into templates/job_script.sh.in. The shell code is
// there, and only there; here are values: each is one line, and each word that
// a shell sees is quoted by command_text().
#include "chexnet/launch/job_script.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <sstream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/launch/restart_policy.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "script_template.hpp"

namespace chexnet {
namespace {

std::string shell(const std::string& word) { return command_text({word}); }

// What both systems take in a job's name.
std::string job_name(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' &&
        c != '-')
      c = '_';
  return name.empty() ? "chexnet" : name;
}

std::string number(int value) { return std::to_string(value); }

int ranks_per_node(const JobRequest& request) {
  return std::max({request.ranks_per_node, request.gpus_per_node, 1});
}

// "--x" and "-l x" become directives; whole directive lines stay.
std::string directive(const std::string& prefix, const std::string& line) {
  return (line.starts_with('#') ? line : prefix + " " + line) + "\n";
}

std::vector<std::string> slurm_options(const JobRequest& request) {
  std::vector<std::string> options = {
      "--job-name=" + job_name(request.name),
      "--nodes=" + number(request.nodes),
      "--ntasks-per-node=" + number(ranks_per_node(request))};
  if (request.cpus_per_rank > 0)
    options.push_back("--cpus-per-task=" + number(request.cpus_per_rank));
  if (request.gpus_per_node > 0)
    options.push_back("--gpus-per-node=" + number(request.gpus_per_node));
  options.push_back("--time=" + request.time);
  if (!request.account.empty())
    options.push_back("--account=" + request.account);
  if (!request.partition.empty())
    options.push_back("--partition=" + request.partition);
  if (!request.points.empty())
    options.push_back("--array=0-" + std::to_string(request.points.size() - 1));
  options.emplace_back(request.points.empty() ? "--output=%x-%j.out"
                                              : "--output=%x-%A_%a.out");
  // Append: a requeued job goes on in the same file.
  options.insert(options.end(),
                 {"--requeue", "--open-mode=append",
                  "--signal=B:USR1@" + number(request.signal_s)});
  return options;
}

std::vector<std::string> pbs_options(const JobRequest& request) {
  const int ranks = ranks_per_node(request);
  const int cpus = std::max(1, request.cpus_per_rank);
  std::string select =
      "select=" + number(request.nodes) + ":ncpus=" + number(ranks * cpus) +
      ":mpiprocs=" + number(ranks) + ":ompthreads=" + number(cpus);
  if (request.gpus_per_node > 0)
    select += ":ngpus=" + number(request.gpus_per_node);
  std::vector<std::string> options = {"-N " + job_name(request.name),
                                      "-l " + select, "-l place=scatter",
                                      "-l walltime=" + request.time, "-j oe"};
  if (!request.account.empty()) options.push_back("-A " + request.account);
  if (!request.partition.empty()) options.push_back("-q " + request.partition);
  return options;
}

std::string shell_words(const std::vector<std::string>& words) {
  return words.empty() ? "" : command_text(words);
}

// The task's number where the job is an array; a resubmitted task of PBS is a
// job of its own.
std::string task_index(Scheduler scheduler) {
  if (scheduler == Scheduler::kSlurm) return "${SLURM_ARRAY_TASK_ID:-}";
  return "${CHEXNET_TASK:-${PBS_ARRAY_INDEX:-}}";
}

// Of a sweep: each task takes its own folder and assignments.
std::string task_lines(const JobRequest& request) {
  if (request.points.empty()) return "";
  const std::string index = task_index(request.scheduler);
  std::string text = "case " + index + " in\n";
  for (size_t i = 0; i < request.points.size(); ++i) {
    const auto& point = request.points[i];
    text += "  " + std::to_string(i) + ") run=" + shell(point.run_folder) +
            "; arguments+=(";
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
    const std::string code = number(static_cast<int>(meaning.code));
    pattern += (pattern.empty() ? "" : " | ") + code;
    words += "#   " + code + " " + meaning.kind + "\n";
  }
  assert(!pattern.empty());
  values.texts["CODE_PATTERN"] = pattern;
  values.lines["CODES"] = words;
  values.texts["STOPPED"] = number(static_cast<int>(ExitCode::kRequeue));
}

// The options of the head as words for qsub.
std::string qsub_options(const JobRequest& request) {
  std::string given;
  for (const auto& option : pbs_options(request)) given += option + " ";
  for (const auto& line : request.lines)
    given += (line.starts_with("#PBS ") ? line.substr(5) : line) + " ";
  std::istringstream stream(given);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return shell_words(words);
}

std::string directive_lines(const JobRequest& request) {
  const bool pbs = request.scheduler == Scheduler::kPbs;
  const std::string prefix = pbs ? "#PBS" : "#SBATCH";
  auto options = pbs ? pbs_options(request) : slurm_options(request);
  if (pbs && !request.points.empty())
    options.push_back("-J 0-" + std::to_string(request.points.size() - 1));
  options.insert(options.end(), request.lines.begin(), request.lines.end());
  std::string text;
  for (const auto& option : options) text += directive(prefix, option);
  return text;
}

void refuse_line_breaks(const JobRequest& request) {
  std::vector<std::string> values = {request.account, request.partition,
                                     request.time};
  for (const auto* more : {&request.program, &request.lines, &request.setup})
    values.insert(values.end(), more->begin(), more->end());
  for (const auto& value : values)
    if (value.find_first_of("\n\r") != std::string::npos)
      throw ConfigError(
          "[submit] '" + value.substr(0, value.find_first_of("\n\r")) +
          "…': a value holds a line break. Hint: one list item for each line");
}

}  // namespace

int total_ranks(const JobRequest& request) {
  return request.nodes * ranks_per_node(request);
}

void agree_on_ranks(const LaunchConfig& launch, JobRequest& request) {
  const auto wanted = static_cast<int>(launch.ranks);
  const auto wanted_per_node = static_cast<int>(launch.ranks_per_node);
  const bool unsaid = request.ranks_per_node == 0 && request.gpus_per_node == 0;
  if (unsaid && wanted_per_node > 0)
    request.ranks_per_node = wanted_per_node;
  else if (unsaid && wanted % request.nodes == 0)
    request.ranks_per_node = wanted / request.nodes;

  const auto refuse = [&](const std::string& key, int value) {
    throw ConfigError(
        "[submit] " + key + " = " + number(value) +
        ", and the job would have " + number(request.nodes) + " x " +
        number(ranks_per_node(request)) +
        " ranks (hosts x ranks per host). Hint: --nodes and --ranks-per-node "
        "that agree, or --set " +
        key + "=0");
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

std::string job_script(const JobRequest& request) {
  refuse_line_breaks(request);
  const bool pbs = request.scheduler == Scheduler::kPbs;
  const bool steps =
      !pbs && request.launcher == JobLauncher::kSrun;  // PBS has no srun

  TemplateValues values;
  values.parts = {pbs ? "PBS" : "SLURM", steps ? "SRUN" : "MPIRUN"};
  values.lines["DIRECTIVES"] = directive_lines(request);
  for (const auto& line : request.setup) values.lines["SETUP"] += line + "\n";
  values.lines.try_emplace("SETUP");
  values.lines["TASKS"] = task_lines(request);
  values.texts["PROGRAM"] = shell_words(request.program);
  values.texts["ARGUMENTS"] = shell_words(request.arguments);
  values.texts["RUN_FOLDER"] = shell(request.run_folder);
  values.texts["MAX_REQUEUES"] = number(request.max_requeues);
  values.texts["AT_SAME_CHECKPOINT"] = number(RestartPolicy::kSamePlace);
  values.texts["QSUB_OPTIONS"] = qsub_options(request);
  put_exit_codes(values);
  return filled(kJobScriptTemplate, values);
}

}  // namespace chexnet
