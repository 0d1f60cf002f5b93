// NCCL (2.4 to 2.30, src/debug.cc) reads NCCL_DEBUG, NCCL_DEBUG_SUBSYS and
// NCCL_DEBUG_FILE when it first has something to say, opens the file for
// writing and keeps it open; only 2.24 and later can be told to read them
// again. So the file is one in memory, which NCCL opens by its name below
// /proc, and NCCL's descriptor of it becomes one of /dev/null afterwards:
//
//   start:  NCCL's FILE -> descriptor 9 -> our file in memory
//   later:  NCCL's FILE -> descriptor 9 -> /dev/null
#include "chexnet/comm/nccl_recording.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/read_file.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<const char*, const char*>, 2> kAsked = {
    {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "INIT,GRAPH"}}};
constexpr const char* kFile = "NCCL_DEBUG_FILE";
constexpr size_t kLongestLog = size_t{8} << 20;  // of a rank

// NCCL takes variables from these files, too, where the environment lacks them.
bool says_debug(const fs::path& conf) {
  std::error_code error;
  if (!fs::is_regular_file(conf, error)) return false;
  std::ifstream file(conf);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("NCCL_DEBUG")) return true;
  return false;
}

// The user's setting; "" where there is none.
std::string set_by_user() {
  for (const char* name : {kAsked[0].first, kAsked[1].first, kFile})
    if (std::getenv(name) != nullptr) return name;
  const char* named = std::getenv("NCCL_CONF_FILE");
  const char* home = std::getenv("HOME");
  fs::path own = named != nullptr ? named : "";
  if (named == nullptr && home != nullptr) own = fs::path(home) / ".nccl.conf";
  for (const fs::path& conf : {own, fs::path("/etc/nccl.conf")})
    if (says_debug(conf))
      return "NCCL_DEBUG (in " + conf.filename().string() + ")";
  return "";
}

bool is_same_file(int a, int b) {
  struct stat of_a {};
  struct stat of_b {};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

// Every other descriptor of the file in memory is NCCL's.
void send_to_nowhere(int log) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
    const int other =
        parsed_number<int>(entry.path().filename().string()).value_or(log);
    if (other != log && is_same_file(other, log))
      ::dup3(nowhere, other, O_CLOEXEC);
  }
  ::close(nowhere);
}

NcclReport not_recorded(const std::string& why) {
  NcclReport none;
  none.not_recorded = why;
  return none;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

NcclRecording::NcclRecording() {
  problem_ = set_by_user();
  if (!problem_.empty()) {
    problem_ += " is set";
    return;
  }
  log_ = ::memfd_create("nccl-log", MFD_CLOEXEC);
  const std::string path = "/proc/self/fd/" + std::to_string(log_);
  // As NCCL will open it; where it cannot, it would write to stdout.
  const int again = log_ < 0 ? -1 : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (again < 0) {
    problem_ = std::string("this host has no file in memory for it: ") +
               std::strerror(errno);
    if (log_ >= 0) ::close(std::exchange(log_, -1));
    return;
  }
  ::close(again);
  for (const auto& [name, value] : kAsked) setenv(name, value, 1);
  setenv(kFile, path.c_str(), 1);
}

NcclRecording::~NcclRecording() {
  try {
    stop();
  } catch (const std::exception&) {  // no memory: the variables are gone
  }
}

std::string NcclRecording::stop() {
  if (log_ < 0) return "";
  const int log = std::exchange(log_, -1);
  unsetenv(kFile);
  for (const auto& asked : kAsked) unsetenv(asked.first);
  send_to_nowhere(log);
  struct stat now {};
  std::vector<std::byte> bytes;
  if (::fstat(log, &now) == 0)
    bytes.resize(std::min(kLongestLog, static_cast<size_t>(now.st_size)));
  const ptrdiff_t count = read_at(log, 0, bytes);
  ::close(log);
  std::istringstream all(
      std::string(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<size_t>(std::max<ptrdiff_t>(0, count))));
  std::string kept;
  for (std::string line; std::getline(all, line);)
    if (is_about_links(line)) kept += line + "\n";
  if (count <= 0) problem_ = "NCCL wrote no log";
  return kept;
}

NcclReport NcclRecording::read(Communicator& comm, bool wants_infiniband) {
  Json mine = {{"log", stop()}, {"problem", problem_}};
  mine["infiniband"] = wants_infiniband && has_active_infiniband();
  std::vector<std::string> lines;
  std::vector<bool> infiniband;
  for (const auto& of_rank : gather_json(comm, mine)) {
    const std::string problem = of_rank["problem"];
    if (!problem.empty()) return not_recorded(problem);
    infiniband.push_back(of_rank["infiniband"].get<bool>());
    std::istringstream log(of_rank["log"].get<std::string>());
    for (std::string line; std::getline(log, line);) lines.push_back(line);
  }
  try {
    NcclReport report = read_nccl_log(lines, infiniband);
    if (!report.pairs.empty()) return report;
    return not_recorded("its log names no connection");
  } catch (const std::exception& e) {  // the same lines fail on all ranks
    return not_recorded(e.what());
  }
}

bool has_active_infiniband(const fs::path& adapters) {
  std::error_code error;
  for (const auto& adapter : fs::directory_iterator(adapters, error))
    for (const auto& port :
         fs::directory_iterator(adapter.path() / "ports", error))
      if (first_line(port.path() / "link_layer") == "InfiniBand" &&
          first_line(port.path() / "state").ends_with("ACTIVE"))
        return true;
  return false;
}

}  // namespace chexnet
