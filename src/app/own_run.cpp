#include "own_run.hpp"

#include <sys/stat.h>

#include "chexnet/launch/run_lock.hpp"

namespace chexnet {
namespace {

OwnRun::Stamp stamp_of(const std::filesystem::path& file) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return std::pair(info.st_ino,
                   info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec);
}

}  // namespace

OwnRun::OwnRun(const ParentTask& task)
    : folder_(task.run_folder),
      resumes_(task.resumes),
      config_before_(stamp_of(folder_ / "config.yaml")),
      stop_before_(stamp_of(folder_ / "STOP")) {}

OwnRun::Stamp OwnRun::begun() const {
  if (!is_ours()) return std::nullopt;
  return stamp_of(folder_ / "config.yaml");
}

bool OwnRun::is_ours() const {
  if (folder_.empty()) return false;
  const Stamp now = stamp_of(folder_ / "config.yaml");
  return resumes_ || !now || now != config_before_;
}

bool OwnRun::may_be_written() const {
  return is_ours() && !run_is_locked(folder_).value_or(false);
}

bool OwnRun::stop_is_requested() const {
  const Stamp now = stamp_of(folder_ / "STOP");
  return now && now != stop_before_;
}

void OwnRun::remove_old_stop_file() const {
  std::error_code ignored;  // a rank says why it cannot be removed
  if (stop_before_ && may_be_written() && !stop_is_requested())
    std::filesystem::remove(folder_ / "STOP", ignored);
}

}  // namespace chexnet
