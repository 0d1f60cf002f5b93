#include "chexnet/launch/launched_ranks.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>

#include "chexnet/core/parsed_number.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launchers.hpp"
#include "chexnet/launch/network_settings.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// Empty for a process that ends meanwhile: an ifstream takes that for the end
// of the file, where its buffer alone would throw.
std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "S 4700 …" of "4711 (any name) S 4700 …"; empty where it has ended.
std::string state_and_parent_in(const std::string& stat) {
  const auto name_end = stat.rfind(") ");
  return name_end == std::string::npos ? "" : stat.substr(name_end + 2);
}

std::string state_and_parent_of(pid_t process) {
  return state_and_parent_in(
      text_of("/proc/" + std::to_string(process) + "/stat"));
}

bool says_zombie(const std::string& stat) {
  return stat.starts_with('Z') || stat.starts_with('X');
}

// 0 where it has ended.
pid_t parent_of(pid_t process) {
  const std::string stat = state_and_parent_of(process);
  if (stat.empty()) return 0;
  constexpr size_t kBegin = 2;
  const auto end = stat.find(' ', kBegin);
  return parsed_number<pid_t>(stat.substr(kBegin, end - kBegin)).value_or(0);
}

bool is_below(pid_t process, pid_t ancestor) {
  while (process > 1 && process != ancestor) process = parent_of(process);
  return process == ancestor;
}

using IsWanted = std::function<bool(const Environment&)>;

// Nobody else's can be read, nor that of a process that has ended.
Environment environment_of(pid_t process) {
  const std::string all =
      '\0' + text_of("/proc/" + std::to_string(process) + "/environ");
  return [all](const char* name) -> const char* {
    const std::string begin = '\0' + std::string(name) + '=';
    const auto at = all.find(begin);
    return at == std::string::npos ? nullptr : all.c_str() + at + begin.size();
  };
}

// A command of a rank may have ranks of its own, which are not ours.
bool is_wanted_rank(pid_t process, pid_t ancestor, const IsWanted& is_wanted) {
  const Environment env = environment_of(process);
  if (!started_as_rank(env) || !is_wanted(env)) return false;
  const auto by = parsed_number<pid_t>(variable(env, kCommandOfVariable));
  return !by || !is_below(*by, ancestor);
}

std::vector<pid_t> such_ranks_below(pid_t ancestor, const IsWanted& is_wanted) {
  std::vector<pid_t> ranks;
  std::error_code error;
  fs::directory_iterator it("/proc", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const auto process = parsed_number<pid_t>(it->path().filename().string());
    if (process && *process != ancestor && is_below(*process, ancestor) &&
        is_wanted_rank(*process, ancestor, is_wanted))
      ranks.push_back(*process);
  }
  return ranks;
}

}  // namespace

std::vector<pid_t> ranks_below(pid_t ancestor) {
  return such_ranks_below(ancestor, [](const auto&) { return true; });
}

bool is_stopped(pid_t process) {
  const std::string stat = state_and_parent_of(process);
  return stat.starts_with('T') || stat.starts_with('t');
}

bool is_zombie(pid_t process) {
  return says_zombie(state_and_parent_of(process));
}

std::optional<int> wait_status_of(pid_t zombie) {
  const std::string stat = state_and_parent_of(zombie);
  if (!says_zombie(stat)) return std::nullopt;
  const std::string last = stat.substr(stat.rfind(' ') + 1);
  return parsed_number<int>(last.substr(0, last.find('\n')));
}

std::string rank_number_of(pid_t rank) {
  const Environment env = environment_of(rank);
  const char* number = env("OMPI_COMM_WORLD_RANK");
  return number != nullptr ? number : "";
}

bool is_running(pid_t process) {
  const std::string stat = state_and_parent_of(process);
  return !stat.empty() && !says_zombie(stat);
}

bool waits_in_kernel(pid_t process) {
  std::error_code error;
  fs::directory_iterator it("/proc/" + std::to_string(process) + "/task",
                            error);
  for (; !error && it != fs::directory_iterator(); it.increment(error))
    if (state_and_parent_in(text_of(it->path() / "stat")).starts_with('D'))
      return true;
  return false;
}

bool has_all_ranks_below(pid_t ancestor) {
  return !such_ranks_below(ancestor, ranks_share_host).empty();
}

std::vector<pid_t> own_launchers() {
  std::vector<pid_t> found;
  for (pid_t at = getppid(); at > 1; at = parent_of(at))
    if (is_mpi_launcher(at)) found.push_back(at);
  return found;
}

std::filesystem::path own_launcher_program() {
  const auto launchers = own_launchers();
  if (launchers.empty()) return {};
  std::error_code error;
  return fs::read_symlink("/proc/" + std::to_string(launchers.front()) + "/exe",
                          error);
}

}  // namespace chexnet
