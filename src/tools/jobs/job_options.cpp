// Sources: sbatch(1) and qsub(1) of PBS.
#include "job_options.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>

#include "chexnet/core/shell_words.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace {

// Minutes and seconds after a colon.
std::string two_digits(int64_t value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

int cores_per_node(const JobRequest& request) {
  return ranks_per_node(request) * std::max(1, request.cpus_per_rank);
}

// `time` was looked at before a request is made of it.
double seconds_of(const JobRequest& request) {
  return limit_s(request.time).value_or(0);
}

// "30:00:00". In PBS a number alone would be seconds, and it knows no days.
std::string hours_of(const JobRequest& request) {
  const auto seconds = static_cast<int64_t>(seconds_of(request));
  return two_digits(seconds / 3600) + ":" + two_digits(seconds / 60 % 60) +
         ":" + two_digits(seconds % 60);
}

// "--x" and "-l x" become directives; whole directive lines stay.
std::string directive(const std::string& prefix, const std::string& line) {
  return (line.starts_with('#') ? line : prefix + " " + line) + "\n";
}

constexpr std::string_view kPbs = "#PBS";

// What qsub passes over in the head of a script.
bool is_comment(const std::string& line) {
  const bool is_directive =
      line.starts_with(kPbs) && line.find_first_of(" \t") == kPbs.size();
  return line.starts_with('#') && !is_directive;
}

// The lines for the head of a script of PBS, with the variables of the config
// in each -v that is there, because qsub takes one alone. A name without a
// value stands for what the shell of qsub holds.
std::vector<std::string> pbs_lines(const JobRequest& request) {
  std::vector<std::string> lines = request.lines;
  std::string names;
  for (const auto& name : request.variables)
    names += (names.empty() ? "" : ",") + name;
  if (names.empty()) return lines;

  bool found = false;
  for (auto& line : lines) {
    const size_t option = (" " + line).find(" -v");
    if (option == std::string::npos || is_comment(line)) continue;
    const size_t value = line.find_first_not_of(" \t", option + 2);
    line.insert(std::min(value, line.size()), names + ",");
    found = true;
  }
  if (!found) lines.insert(lines.begin(), "-v " + names);
  return lines;
}

// "64G" as PBS has it: "64gb".
std::string pbs_memory(std::string memory) {
  for (char& c : memory)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return memory + "b";
}

std::vector<std::string> slurm_options(const JobRequest& request) {
  std::vector<std::string> options = {
      "--job-name=" + job_name(request),
      "--nodes=" + std::to_string(request.nodes),
      "--ntasks-per-node=" + std::to_string(ranks_per_node(request))};
  if (request.cpus_per_rank > 0)
    options.push_back("--cpus-per-task=" +
                      std::to_string(request.cpus_per_rank));
  if (request.gpus_per_node > 0)
    options.push_back("--gpus-per-node=" +
                      std::to_string(request.gpus_per_node));
  options.push_back("--time=" + request.time);
  const auto given = [&](const char* option, const std::string& value) {
    if (!value.empty()) options.push_back(option + value);
  };
  given("--account=", request.account);
  given("--partition=", request.partition);
  given("--qos=", request.qos);
  given("--constraint=", request.constraint);
  given("--mem=", request.memory);
  if (request.exclusive) options.emplace_back("--exclusive");
  if (!request.points.empty())
    options.push_back("--array=0-" + std::to_string(request.points.size() - 1));
  options.emplace_back(request.points.empty() ? "--output=%x-%j.out"
                                              : "--output=%x-%A_%a.out");
  // Append: a requeued job goes on in the same file.
  options.insert(options.end(),
                 {"--requeue", "--open-mode=append",
                  "--signal=B:USR1@" + std::to_string(request.signal_s)});
  return options;
}

std::vector<std::string> pbs_options(const JobRequest& request) {
  const int ranks = ranks_per_node(request);
  std::string select = "select=" + std::to_string(request.nodes) +
                       ":ncpus=" + std::to_string(cores_per_node(request)) +
                       ":mpiprocs=" + std::to_string(ranks) + ":ompthreads=" +
                       std::to_string(std::max(1, request.cpus_per_rank));
  if (request.gpus_per_node > 0)
    select += ":ngpus=" + std::to_string(request.gpus_per_node);
  if (!request.memory.empty()) select += ":mem=" + pbs_memory(request.memory);
  std::vector<std::string> options = {
      "-N " + job_name(request), "-l " + select,
      request.exclusive ? "-l place=scatter:exclhost" : "-l place=scatter",
      "-l walltime=" + hours_of(request), "-j oe"};
  if (!request.account.empty()) options.push_back("-A " + request.account);
  if (!request.partition.empty()) options.push_back("-q " + request.partition);
  return options;
}

}  // namespace

std::string job_name(const JobRequest& request) {
  std::string name = request.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' &&
        c != '-')
      c = '_';
  return name.empty() ? "chexnet" : name;
}

int ranks_per_node(const JobRequest& request) {
  return request.ranks_per_node > 0 ? request.ranks_per_node
                                    : std::max(request.gpus_per_node, 1);
}

std::string directive_lines(const JobRequest& request) {
  const bool slurm = request.scheduler == Scheduler::kSlurm;
  auto options = slurm ? slurm_options(request) : pbs_options(request);
  // qsub takes no array of one.
  if (!slurm && request.points.size() > 1)
    options.push_back("-J 0-" + std::to_string(request.points.size() - 1));
  const auto lines = slurm ? request.lines : pbs_lines(request);
  options.insert(options.end(), lines.begin(), lines.end());
  std::string text;
  for (const auto& option : options)
    text += directive(slurm ? "#SBATCH" : std::string(kPbs), option);
  return text;
}

QsubOptions qsub_options(const JobRequest& request) {
  std::string given;
  for (const auto& option : pbs_options(request)) given += option + " ";
  for (const auto& line : pbs_lines(request))
    if (!is_comment(line))
      given += (line.starts_with('#') ? line.substr(kPbs.size()) : line) + " ";
  std::vector<std::string> words = words_of(given);
  const auto is_variables = [](const std::string& word) {
    return word.starts_with("-v");
  };
  // qsub takes one list of variables; those of the script come with it.
  std::string variables;
  for (auto word = words.begin();
       (word = std::find_if(word, words.end(), is_variables)) != words.end();) {
    const bool apart = *word == "-v" && word + 1 != words.end();
    variables += (apart ? *(word + 1) : word->substr(2)) + ",";
    word = words.erase(word, word + (apart ? 2 : 1));
  }
  return {command_text(words), variables};
}

}  // namespace chexnet
