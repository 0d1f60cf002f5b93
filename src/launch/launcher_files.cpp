// The files, with Open MPI 4 (mpirun 4711 on node1, user 1000, whose jobs have
// numbers that begin with 23ef):
//
//   $TMPDIR/ompi.node1.1000/pid.4711/contact.txt     "602865664.0;tcp://…",
//                                    pmix_dstor…      which is 0x23ef0000
//   /dev/shm/vader_segment.node1.1000.23ef0001.0     of local rank 0
//
// On the other hosts (orted 815 on node2) its number is in a file's name:
//
//   $TMPDIR/ompi.node2.1000/jf.9199/pmix_dstor_ds21_815    9199 is 0x23ef
//
// Only names of this form are touched, below a folder of this user.
#include "chexnet/launch/launcher_files.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/core/parsed_number.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launchers.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// Ranks that the launcher's death kills are gone by then.
constexpr useconds_t kRanksEnd_us = 200'000;
constexpr const char* kOwnName = "chexnet-tidy";  // at most 15 characters

bool is_own_folder(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid();
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error))
    found.push_back(it->path());
  return found;
}

// The number after `prefix`, where nothing else is in the name.
std::optional<uint32_t> number_behind(const std::string& prefix,
                                      const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parsed_number<uint32_t>(name.substr(prefix.size()));
}

bool is_session_of_daemon(const fs::path& session, pid_t daemon) {
  const std::string end = "_" + std::to_string(daemon);
  return number_behind("jf.", session.filename().string()) &&
         std::ranges::any_of(entries(session), [&](const fs::path& path) {
           const std::string name = path.filename().string();
           return name.starts_with("pmix_dstor_") && name.ends_with(end);
         });
}

// mpirun's, or of its daemon on this host.
std::vector<fs::path> sessions_of(pid_t launcher, const fs::path& top) {
  std::vector<fs::path> found;
  for (const auto& session : entries(top))
    if (is_own_folder(session) &&
        (session.filename() == "pid." + std::to_string(launcher) ||
         is_session_of_daemon(session, launcher)))
      found.push_back(session);
  return found;
}

// The upper half of the numbers of a launcher's jobs, which all of them share.
std::optional<uint32_t> job_family(const fs::path& session) {
  const auto named = number_behind("jf.", session.filename().string());
  if (named) return named;
  std::ifstream contact(session / "contact.txt");
  uint32_t job = 0;
  if (!(contact >> job)) return std::nullopt;
  return job >> 16;
}

// vader_segment.HOST.USER.JOB.RANK, where HOST may have points.
bool is_segment_of(const std::string& name, uint32_t family) {
  if (!name.starts_with("vader_segment.")) return false;
  const auto rank = name.rfind('.');
  const auto job = name.rfind('.', rank - 1);
  if (job == std::string::npos || rank - job < 2) return false;
  uint32_t number = 0;
  const char* end = name.data() + rank;
  const auto read = std::from_chars(name.data() + job + 1, end, number, 16);
  return read.ec == std::errc() && read.ptr == end && number >> 16 == family;
}

void remove_segments(uint32_t family, const fs::path& shared_memory) {
  for (const auto& path : entries(shared_memory)) {
    struct stat info {};
    if (is_segment_of(path.filename().string(), family) &&
        ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == ::geteuid())
      ::unlink(path.c_str());
  }
}

// Who looks for the run's processes by their arguments is not to find this one.
void take_own_name() {
  prctl(PR_SET_NAME, kOwnName);
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string arguments((std::istreambuf_iterator<char>(file)), {});
  if (arguments.size() <= std::strlen(kOwnName)) return;
  // The kernel shows the memory of argv, which begins here.
  std::memset(program_invocation_name, 0, arguments.size());
  std::ranges::copy(std::string_view(kOwnName), program_invocation_name);
}

[[noreturn]] void wait_and_remove(pid_t launcher, int handle,
                                  const fs::path& temporary_folder) {
  setsid();
  close_files_but(handle);
  [[maybe_unused]] const int rc = chdir("/");
  take_own_name();
  pollfd ended{handle, POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) continue;
  usleep(kRanksEnd_us);
  remove_launcher_files(launcher, temporary_folder, "/dev/shm");
  _exit(0);
}

}  // namespace

void remove_launcher_files(pid_t launcher, const fs::path& temporary_folder,
                           const fs::path& shared_memory) {
  for (const auto& top : entries(temporary_folder)) {
    if (!top.filename().string().starts_with("ompi.") || !is_own_folder(top))
      continue;
    std::error_code ignored;
    for (const auto& session : sessions_of(launcher, top)) {
      if (const auto family = job_family(session))
        remove_segments(*family, shared_memory);
      fs::remove_all(session, ignored);
    }
    // Where no other job of this user is active. It may be all that is left: of
    // an mpirun that was killed while it removed its files.
    fs::remove(top, ignored);
  }
}

void remove_launcher_files_after(pid_t launcher) {
  std::error_code error;
  const fs::path temporary_folder = fs::temp_directory_path(error);
  if (error) return;
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, launcher, 0U));
  if (handle < 0) return;
  const pid_t between = fork();
  if (between == 0) {
    // A grandchild, so that nobody has to wait for its end.
    if (fork() != 0) _exit(0);
    wait_and_remove(launcher, handle, temporary_folder);
  }
  close(handle);
  int status = 0;
  while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR)
    continue;
}

void remove_files_after_launcher() {
  const Environment env = process_environment();
  const char* local_rank = env("OMPI_COMM_WORLD_LOCAL_RANK");
  if (local_rank == nullptr || std::string_view(local_rank) != "0") return;
  const pid_t launcher = getppid();
  // The parent does it after its mpirun, but on its host alone.
  if (started_by_parent(env) && !is_mpi_daemon(launcher)) return;
  if (is_mpi_launcher(launcher)) remove_launcher_files_after(launcher);
}

}  // namespace chexnet
