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
#include "chexnet/launch/network.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// Empty for a process that ends meanwhile: a stream takes that for the end of
// the file, where its buffer alone would throw.
std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// 0 where it has ended.
pid_t parent_of(pid_t process) {
  const std::string stat =
      text_of("/proc/" + std::to_string(process) + "/stat");
  // "4711 (any name) S 4700 …"
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return 0;
  const auto begin = name_end + 4;
  const auto end = stat.find(' ', begin);
  return parsed_number<pid_t>(stat.substr(begin, end - begin)).value_or(0);
}

bool is_below(pid_t process, pid_t ancestor) {
  while (process > 1 && process != ancestor) process = parent_of(process);
  return process == ancestor;
}

using IsWanted = std::function<bool(const Environment&)>;

// By its environment; nobody else's can be read.
bool is_wanted_rank(pid_t process, const IsWanted& is_wanted) {
  const std::string all =
      '\0' + text_of("/proc/" + std::to_string(process) + "/environ");
  const Environment env = [&](const char* name) -> const char* {
    const std::string begin = '\0' + std::string(name) + '=';
    const auto at = all.find(begin);
    return at == std::string::npos ? nullptr : all.c_str() + at + begin.size();
  };
  return started_as_rank(env) && is_wanted(env);
}

bool has_such_ranks_below(pid_t ancestor, const IsWanted& is_wanted) {
  std::error_code error;
  fs::directory_iterator it("/proc", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const auto process = parsed_number<pid_t>(it->path().filename().string());
    if (process && *process != ancestor && is_below(*process, ancestor) &&
        is_wanted_rank(*process, is_wanted))
      return true;
  }
  return false;
}

}  // namespace

bool has_ranks_below(pid_t ancestor) {
  return has_such_ranks_below(ancestor, [](const auto&) { return true; });
}

bool has_all_ranks_below(pid_t ancestor) {
  return has_such_ranks_below(ancestor, ranks_share_host);
}

std::filesystem::path own_launcher_program() {
  for (pid_t at = getppid(); at > 1; at = parent_of(at)) {
    if (!is_mpi_launcher(at)) continue;
    std::error_code error;
    return fs::read_symlink("/proc/" + std::to_string(at) + "/exe", error);
  }
  return {};
}

}  // namespace chexnet
