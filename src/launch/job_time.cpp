// How long the batch system lets a job run.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <sstream>

#include "chexnet/core/parsed_number.hpp"
#include "chexnet/launch/batch_system.hpp"

namespace chexnet {
namespace {

// Of a listing, from after `key` to one of `ends`.
std::string listed(const std::string& listing, const std::string& key,
                   const char* ends) {
  const auto at = listing.find(key);
  if (at == std::string::npos) return "";
  const auto begin = at + key.size();
  return listing.substr(begin, listing.find_first_of(ends, begin) - begin);
}

std::optional<double> pbs_seconds_left(const BatchJob& job,
                                       const Environment& env, const Ask& ask,
                                       double job_age_s) {
  const std::string listing = ask({"qstat", "-f", job.id});
  const auto limit =
      duration_s(listed(listing, "Resource_List.walltime = ", "\n"));
  const auto used =
      duration_s(listed(listing, "resources_used.walltime = ", "\n"));
  // The used time is refreshed every few minutes; the job's age is always
  // current.
  if (limit) return *limit - std::max(used.value_or(0), job_age_s);
  const char* walltime = env("PBS_WALLTIME");
  const auto torque = duration_s(walltime == nullptr ? "" : walltime);
  return torque ? std::optional(*torque - job_age_s) : std::nullopt;
}

std::optional<double> slurm_seconds_left(const BatchJob& job,
                                         const Environment& env,
                                         const Ask& ask) {
  std::string left = ask({"squeue", "-h", "-j", job.id, "-o", "%L"});
  std::erase_if(left, [](char c) { return c <= ' '; });
  if (!left.empty()) return duration_s(left);
  // A container often holds no squeue. The variable does not know of a limit
  // that was changed since the start.
  const char* end = env("SLURM_JOB_END_TIME");  // Unix time; Slurm 22.05
  const auto end_s = parsed_number<std::time_t>(end == nullptr ? "" : end);
  if (!end_s || *end_s <= 0) return std::nullopt;
  return std::difftime(*end_s, std::time(nullptr));
}

// "12:30 L": hours and minutes until the run limit, without an estimate of the
// user's (E, X); then "90.0/host,600 second(s)", the limit in minutes and the
// time used. With LSB_HMS_TIME_FORMAT times are hours, minutes, seconds.
std::optional<double> lsf_seconds_left(const BatchJob& job, const Ask& ask) {
  std::istringstream line(
      ask({"bjobs", "-noheader", "-o",
           "time_left runtimelimit run_time delimiter=','", job.id}));
  std::string left, limit, used;
  std::getline(line, left, ',');
  std::getline(line, limit, ',');
  std::getline(line, used);
  const auto seconds = [](const std::string& text, double of_two_parts) {
    const auto time = duration_s(text.substr(0, text.find_first_of(" /.")));
    const bool short_form = std::ranges::count(text, ':') < 2;
    return time && short_form ? std::optional(*time * of_two_parts) : time;
  };
  constexpr double kMinute_s = 60, kSecond_s = 1;
  if (left.find('L') != std::string::npos) return seconds(left, kMinute_s);
  const auto limit_s = seconds(limit, kMinute_s);
  const auto used_s = seconds(used, kSecond_s);
  if (!limit_s || !used_s) return std::nullopt;
  return *limit_s - *used_s;
}

// `hard resource_list:   h_rt=3600,mem=4G`
std::optional<double> grid_engine_seconds_left(const BatchJob& job,
                                               const Ask& ask,
                                               double job_age_s) {
  const auto limit =
      duration_s(listed(ask({"qstat", "-j", job.id}), "h_rt=", ",\n "));
  return limit ? std::optional(*limit - job_age_s) : std::nullopt;
}

// Seconds; without a limit the largest number of 32 bits.
std::optional<double> flux_seconds_left(const Ask& ask) {
  std::string left = ask({"flux", "job", "timeleft"});
  std::erase_if(left, [](char c) { return c <= ' '; });
  const auto seconds = parsed_number<unsigned>(left);
  if (!seconds || *seconds == std::numeric_limits<unsigned>::max())
    return std::nullopt;
  return *seconds;
}

}  // namespace

std::optional<double> duration_s(const std::string& text) {
  constexpr double kMost_s = 1e9;  // 31 years
  const auto dash = text.find('-');
  const bool with_days = dash != std::string::npos;
  double days = 0, seconds = 0;
  if (with_days) {
    const auto found = parsed_number<unsigned>(text.substr(0, dash));
    if (!found) return std::nullopt;
    days = *found;
  }
  int parts = 0;
  std::istringstream fields(with_days ? text.substr(dash + 1) : text);
  for (std::string field; std::getline(fields, field, ':'); ++parts) {
    const auto found = parsed_number<unsigned>(field);
    constexpr unsigned kSixty = 60;  // minutes and seconds after hours
    if (!found || (parts > 0 && *found >= kSixty)) return std::nullopt;
    seconds = kSixty * seconds + *found;
  }
  if (parts == 0 || parts > 3 || text.ends_with(':')) return std::nullopt;
  // After days come hours, minutes, seconds, of which the last may be missing.
  for (; with_days && parts < 3; ++parts) seconds *= 60;
  seconds += 86400 * days;
  return seconds <= kMost_s ? std::optional(seconds) : std::nullopt;
}

std::optional<double> job_seconds_left(const BatchJob& job,
                                       const Environment& env, const Ask& ask,
                                       double job_age_s) {
  using enum BatchJob::Kind;
  switch (job.kind) {
    case kNone:
      return std::nullopt;
    case kSlurm:
      return slurm_seconds_left(job, env, ask);
    case kPbs:
      return pbs_seconds_left(job, env, ask, job_age_s);
    case kLsf:
      return lsf_seconds_left(job, ask);
    case kGridEngine:
      return grid_engine_seconds_left(job, ask, job_age_s);
    case kFlux:
      return flux_seconds_left(ask);
  }
  return std::nullopt;
}

std::optional<double> job_seconds_left(const BatchJob& job) {
  struct stat file {};
  double age = 0;
  if (!job.start_file.empty() && stat(job.start_file.c_str(), &file) == 0)
    age = std::difftime(std::time(nullptr), file.st_mtime);
  return job_seconds_left(job, process_environment(), ask_command, age);
}

}  // namespace chexnet
