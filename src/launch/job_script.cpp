#include "chexnet/launch/job_script.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "chexnet/config/strict_yaml.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace {

std::string shell(const std::string& word) { return command_text({word}); }

// What both systems take in a job's name.
std::string job_name(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
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
  std::vector<std::string> options = {"--job-name=" + job_name(request.name),
                                      "--nodes=" + number(request.nodes),
                                      "--ntasks-per-node=" + number(ranks_per_node(request))};
  if (request.cpus_per_rank > 0)
    options.push_back("--cpus-per-task=" + number(request.cpus_per_rank));
  if (request.gpus_per_node > 0)
    options.push_back("--gpus-per-node=" + number(request.gpus_per_node));
  options.push_back("--time=" + request.time);
  if (!request.account.empty()) options.push_back("--account=" + request.account);
  if (!request.partition.empty()) options.push_back("--partition=" + request.partition);
  if (!request.points.empty())
    options.push_back("--array=0-" + std::to_string(request.points.size() - 1));
  options.push_back(request.points.empty() ? "--output=%x-%j.out" : "--output=%x-%A_%a.out");
  // Append: a requeued job goes on in the same file.
  options.insert(options.end(), {"--requeue", "--open-mode=append",
                                 "--signal=B:USR1@" + number(request.signal_s)});
  return options;
}

std::vector<std::string> pbs_options(const JobRequest& request) {
  const int ranks = ranks_per_node(request);
  const int cpus = std::max(1, request.cpus_per_rank);
  std::string select = "select=" + number(request.nodes) + ":ncpus=" + number(ranks * cpus) +
                       ":mpiprocs=" + number(ranks) + ":ompthreads=" + number(cpus);
  if (request.gpus_per_node > 0) select += ":ngpus=" + number(request.gpus_per_node);
  std::vector<std::string> options = {"-N " + job_name(request.name), "-l " + select,
                                      "-l place=scatter", "-l walltime=" + request.time, "-j oe"};
  if (!request.account.empty()) options.push_back("-A " + request.account);
  if (!request.partition.empty()) options.push_back("-q " + request.partition);
  return options;
}

// `run` and `arguments`, of this task where there are several.
std::string task_lines(const JobRequest& request, const std::string& index) {
  std::string text = "arguments=(train";
  for (const auto& word : request.arguments) text += " " + shell(word);
  text += ")\n";
  if (request.points.empty()) return text + "run=" + shell(request.run_folder) + "\n";
  text += "case " + index + " in\n";
  for (std::size_t i = 0; i < request.points.size(); ++i) {
    const auto& point = request.points[i];
    text += "  " + std::to_string(i) + ") run=" + shell(point.run_folder);
    text += "; arguments+=(";
    for (std::size_t a = 0; a < point.assignments.size(); ++a)
      text += (a == 0 ? "--set " : " --set ") + shell(point.assignments[a]);
    text += ") ;;\n";
  }
  return text + "  *) echo \"no task of number " + index +
         " in this sweep\" >&2; exit 2 ;;\nesac\n";
}

constexpr const char* kStart = R"SH(
# USR1 asks for a checkpoint and exit code 75; TERM (a canceled job) too, but is not followed by another start.
canceled=no
"${command[@]}" &
pid=$!
trap 'kill -USR1 "$pid" 2>/dev/null' USR1
trap 'canceled=yes; kill -USR1 "$pid" 2>/dev/null' TERM
code=0
# A trapped signal ends `wait` early: wait until the program is gone, and take its own exit code.
while :; do
  wait "$pid"; status=$?
  [ "$status" -eq 127 ] || code=$status
  kill -0 "$pid" 2>/dev/null || break
done
if [ "$code" -gt 128 ]; then
  wait "$pid"; status=$?
  [ "$status" -eq 127 ] || code=$status
fi
trap '' USR1 TERM

# Another start helps after 75 (stopped in time), 5 (device, communication), 7 (a rank hung) and 9 (storage did not answer).
case $code in 75 | 5 | 7 | 9) ;; *) exit "$code" ;; esac
[ "$canceled" = no ] || exit "$code"
)SH";

constexpr const char* kHistory =
    R"SH(# Two restarts at the same checkpoint are enough. The program may have ended before it made its folder.
place=$(readlink "$run/checkpoints/last" 2>/dev/null || echo none)
history=$run/requeues
if [ "$(tail -n 2 "$history" 2>/dev/null | grep -cxF -- "$place")" -ge 2 ]; then
  echo "no restart: two restarts got no further than checkpoint $place" >&2
  exit "$code"
fi
mkdir -p -- "$run" && echo "$place" >>"$history"
)SH";

// Everything before the task: directives, what the script says of itself, the site's set-up.
std::string head(const std::string& prefix, const std::vector<std::string>& options,
                 const JobRequest& request, const std::string& words) {
  std::string text = "#!/bin/bash\n";
  for (const auto& option : options) text += directive(prefix, option);
  for (const auto& line : request.lines) text += directive(prefix, line);
  text += words;
  for (const auto& line : request.setup) text += line + "\n";
  return text + "\nprogram=(" + command_text(request.program) + ")\n";
}

// Ends the script when `restarts` (a shell expression) are as many as allowed, or lead nowhere;
// else writes this one down.
std::string restart_checks(const std::string& restarts) {
  return "if [ \"" + restarts + R"SH(" -ge "$max_requeues" ]; then
  echo "no restart: $max_requeues were allowed" >&2
  exit "$code"
fi
)SH" + kHistory;
}

void refuse_line_breaks(const JobRequest& request) {
  std::vector<std::string> values = {request.account, request.partition, request.time};
  for (const auto* more : {&request.program, &request.lines, &request.setup})
    values.insert(values.end(), more->begin(), more->end());
  for (const auto& value : values)
    if (value.find_first_of("\n\r") != std::string::npos)
      throw ConfigError("[submit] '" + value.substr(0, value.find_first_of("\n\r")) +
                        "…': a value holds a line break. Hint: one list item for each line");
}

std::string slurm_script(const JobRequest& request) {
  std::string text = head(
      "#SBATCH", slurm_options(request), request,
      "# Written by `chexnet-train submit --slurm`; options of sbatch's command line go before "
      "those above.\n# --signal is a safety net: the program asks Slurm for the time left and "
      "stops itself before it ends.\nset -u\n");
  text += task_lines(request, "${SLURM_ARRAY_TASK_ID:-}");
  text += "max_requeues=" + number(request.max_requeues) + "\n";
  if (request.launcher == "srun")
    text +=
        "# A step does not inherit -c from Slurm 22.05 on.\n"
        "command=(srun --mpi=pmix -c \"${SLURM_CPUS_PER_TASK:-1}\" \"${program[@]}\" "
        "\"${arguments[@]}\" --out \"$run\" --resume auto)\n";
  else
    text += "command=(\"${program[@]}\" \"${arguments[@]}\" --out \"$run\" --resume auto)\n";
  text += kStart;
  text += restart_checks("${SLURM_RESTART_COUNT:-0}");
  text += R"SH(job=$SLURM_JOB_ID
[ -z "${SLURM_ARRAY_JOB_ID:-}" ] || job=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}
echo "exit $code at checkpoint $place: job $job is requeued"
scontrol requeue "$job"
exit "$code"
)SH";
  return text;
}

std::string pbs_script(const JobRequest& request) {
  const auto options = pbs_options(request);
  auto directives = options;
  if (!request.points.empty())
    directives.push_back("-J 0-" + std::to_string(request.points.size() - 1));
  std::string text = head(
      "#PBS", directives, request,
      "# Written by `chexnet-train submit --pbs`. The program asks PBS for the time left and "
      "stops itself before it ends:\n# TERM at the end of the walltime never reaches the ranks "
      "of other hosts.\nset -u\ncd \"${PBS_O_WORKDIR:-.}\" || exit 2\n");
  // A resubmitted task of an array is a job of its own.
  text += task_lines(request, "${CHEXNET_TASK:-${PBS_ARRAY_INDEX:-}}");
  text += "max_requeues=" + number(request.max_requeues) +
          "\nsubmission=${CHEXNET_SUBMISSION:-0}\n"
          "command=(\"${program[@]}\" \"${arguments[@]}\" --out \"$run\" --resume auto)\n";
  text += kStart;
  text += restart_checks("$submission");
  text += R"SH(script=$run/job.pbs
[ "$submission" -gt 0 ] || cp -- "$0" "$script"
# The options of the head, given by hand, because an array's -J must not come again.
options=()SH";
  std::string given;
  for (const auto& option : options) given += option + " ";
  for (const auto& line : request.lines)
    given += (line.starts_with("#PBS ") ? line.substr(5) : line) + " ";
  std::istringstream words(given);
  std::vector<std::string> quoted;
  for (std::string word; words >> word;) quoted.push_back(word);
  text += command_text(quoted);
  text += R"SH()
variables=CHEXNET_SUBMISSION=$((submission + 1)),CHEXNET_TASK=${CHEXNET_TASK:-${PBS_ARRAY_INDEX:-}}
echo "exit $code at checkpoint $place: submitted again, $((submission + 1)) of $max_requeues"
qsub -C '#no-directives' "${options[@]}" -v "$variables" "$script"
exit "$code"
)SH";
  return text;
}

}  // namespace

void read_site_file(const std::filesystem::path& path, JobRequest& request) {
  std::ifstream file(path);
  if (!file)
    throw ConfigError("[submit] " + path.string() +
                      ": cannot be read. Hint: CHEXNET_SITE and --site name a YAML file");
  std::stringstream text;
  text << file.rdbuf();
  const std::vector<std::string> known = {
      "account",   "cpus_per_rank", "gpus_per_node",  "launcher",  "lines", "max_requeues", "nodes",
      "partition", "program",       "ranks_per_node", "scheduler", "setup", "time"};
  for (const auto& [key, value] : read_strict_yaml(path.string(), text.str())) {
    const std::string first = value.items.empty() ? "" : value.items.front();
    const auto fail = [&, &key = key, &value = value](const std::string& what) {
      throw ConfigError("[submit] " + value.place + ": '" + key + "' " + what);
    };
    const auto count = [&] {
      if (first.empty() || first.find_first_not_of("0123456789") != std::string::npos)
        fail("= '" + first + "' is no count. Hint: a whole number");
      if (first.size() > 6) fail("= '" + first + "' is too large. Hint: below 1000000");
      return std::stoi(first);
    };
    if (std::ranges::find(known, key) == known.end())
      fail("is unknown. Hint: nearest are " + nearest_names(key, known));
    if (value.is_list != (key == "lines" || key == "setup"))
      fail(value.is_list ? "is a list. Hint: a single value" : "is no list. Hint: [..., ...]");
    if (key == "account") request.account = first;
    if (key == "partition") request.partition = first;
    if (key == "time") request.time = first;
    if (key == "program") request.program = {first};
    if (key == "lines") request.lines = value.items;
    if (key == "setup") request.setup = value.items;
    if (key == "nodes") request.nodes = count();
    if (key == "ranks_per_node") request.ranks_per_node = count();
    if (key == "gpus_per_node") request.gpus_per_node = count();
    if (key == "cpus_per_rank") request.cpus_per_rank = count();
    if (key == "max_requeues") request.max_requeues = count();
    if (key == "launcher") {
      if (first != "mpirun" && first != "srun") fail("= '" + first + "'. Hint: mpirun or srun");
      request.launcher = first;
    }
    if (key == "scheduler") {
      if (first != "slurm" && first != "pbs") fail("= '" + first + "'. Hint: slurm or pbs");
      request.scheduler = first == "pbs" ? Scheduler::kPbs : Scheduler::kSlurm;
    }
  }
}

int total_ranks(const JobRequest& request) { return request.nodes * ranks_per_node(request); }

int signal_lead_s(double job_s, double stop_margin_s) {
  constexpr double kLongest_s = 60, kShareOfJob = 0.1;
  return std::max(1, static_cast<int>(std::min({kLongest_s, stop_margin_s, kShareOfJob * job_s})));
}

std::string job_script(const JobRequest& request) {
  refuse_line_breaks(request);
  return request.scheduler == Scheduler::kPbs ? pbs_script(request) : slurm_script(request);
}

}  // namespace chexnet
