#include "chexnet/launch/machine/host_checks.hpp"

#include <fcntl.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/launch/machine/topology.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

double limit_of(int resource) {
  rlimit limit{};
  getrlimit(resource, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? -1
                                         : static_cast<double>(limit.rlim_cur);
}

double free_bytes(const struct statvfs& file_system) {
  return static_cast<double>(file_system.f_bavail) *
         static_cast<double>(file_system.f_frsize);
}

// Bytes left of this user's quota on the file system of `folder`; -1 where
// there is none.
double quota_left(const fs::path& folder) {
  std::ifstream mounts("/proc/self/mounts");
  std::string device, best_device, where, best, rest;
  const std::string path = fs::absolute(folder).string();
  while (mounts >> device >> where && std::getline(mounts, rest))
    if (path.starts_with(where) && where.size() >= best.size()) {
      best = where;
      best_device = device;
    }
  dqblk quota{};
  if (best_device.empty() ||
      quotactl(QCMD(Q_GETQUOTA, USRQUOTA), best_device.c_str(),
               static_cast<int>(getuid()),
               reinterpret_cast<caddr_t>(&quota)) != 0 ||
      quota.dqb_bhardlimit == 0)
    return -1;
  constexpr double kBlock = 1024;  // of dqb_bhardlimit
  return std::max(0.0, kBlock * static_cast<double>(quota.dqb_bhardlimit) -
                           static_cast<double>(quota.dqb_curspace));
}

// As read_rate_mb_per_s; CheckpointError says why nothing could be measured.
double read_rate(const fs::path& folder) {
  constexpr size_t kBytes = 64 << 20;
  std::string path = (folder / ".chexnet-doctor-XXXXXX").string();
  const int fd = mkstemp(path.data());
  if (fd < 0)
    throw CheckpointError(
        "[doctor] {}: {}. Hint: --folder names one that can be written",
        folder.string(), std::strerror(errno));
  std::vector<std::byte> block(1 << 20, std::byte{0x5a});
  bool good = true;
  for (size_t at = 0; at < kBytes && good; at += block.size()) {
    std::memcpy(block.data(), &at, sizeof at);  // nothing to compress
    good = ::write(fd, block.data(), block.size()) ==
           static_cast<ssize_t>(block.size());
  }
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  const double start = now_s();
  for (size_t at = 0; at < kBytes && good; at += block.size())
    good = read_at(fd, at, block) == static_cast<ptrdiff_t>(block.size());
  const double seconds = now_s() - start;
  ::close(fd);
  fs::remove(path);
  if (!good)
    throw CheckpointError(
        "[doctor] {}: a file of 64 MiB cannot be written and read. Hint: is it "
        "full?",
        folder.string());
  return 1e-6 * kBytes / seconds;
}

}  // namespace

std::optional<double> read_rate_mb_per_s(const std::string& folder) {
  try {
    return read_rate(folder);
  } catch (const CheckpointError&) {
    return {};  // the row `file system` of check_host says why
  }
}

std::vector<CheckResult> check_host(const HostCheckOptions& options) {
  assert(!options.folder.empty() && options.ranks_here > 0);
  const std::string& folder = options.folder;
  const int ranks = options.ranks_here;
  std::vector<CheckResult> found;

  const auto nvml = Nvml::open();
  auto gpus = nvml ? nvml->gpus() : std::vector<GpuState>{};
  keep_strangers(gpus, options.pids_on_gpus);
  found.push_back(
      check_driver(options.build.variant, nvml ? nvml->driver_version() : ""));
  found.push_back(check_gpu_access(options.gpu_problem, options.visible_gpus,
                                   options.build, options.problem_elsewhere));
  for (const auto& gpu : gpus)
    for (auto& result : check_gpu(gpu)) found.push_back(std::move(result));
  found.push_back(check_visible_gpus(gpus.size(), options.visible_gpus, ranks));

  Machine machine;
  try {
    machine = read_machine(gpus);
    found.push_back({Level::kPass, "machine", machine_text(machine), ""});
  } catch (const Error& error) {
    found.push_back({Level::kFail, "machine", error.what(), ""});
  }

  const bool pins = options.pins_memory || !machine.hcas.empty();
  found.push_back(check_locked_memory(limit_of(RLIMIT_MEMLOCK), pins));
  found.push_back(check_open_files(limit_of(RLIMIT_NOFILE)));

  if (auto shm = shared_memory_check(ranks)) found.push_back(std::move(*shm));

  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) == 0) {
    const double inodes =
        disk.f_files == 0 ? -1 : static_cast<double>(disk.f_favail);
    found.push_back(
        check_room(folder, free_bytes(disk), inodes, quota_left(folder)));
  }
  try {
    found.push_back(check_read_rate(folder, read_rate(folder)));
  } catch (const CheckpointError& e) {
    found.push_back({Level::kFail, "file system", e.what(),
                     "another folder with --folder"});
  }
  return found;
}

std::optional<CheckResult> shared_memory_check(int ranks_here) {
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) != 0) return std::nullopt;
  return check_shared_memory(free_bytes(shm), ranks_here);
}

}  // namespace chexnet
