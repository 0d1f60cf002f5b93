// A lock on a folder that is there is either its owner's or, for a moment, that
// of a process that looks whether the owner has died. So an owner who does not
// get the lock of the folder it has just made makes another.
#include "chexnet/core/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "chexnet/core/error.hpp"
#include "file_places.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kRandom = 6;  // letters that mkdtemp() chooses

// -1 where it is none.
int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Of this user alone, and its owner has died.
bool is_left(int folder) {
  struct stat info {};
  return ::fstat(folder, &info) == 0 && info.st_uid == ::geteuid() &&
         (info.st_mode & 077) == 0 && ::flock(folder, LOCK_EX | LOCK_NB) == 0;
}

void remove_left_folders(const fs::path& place, const std::string& name) {
  std::error_code error;
  for (fs::directory_iterator it(place, error), end; !error && it != end;
       it.increment(error)) {
    const std::string found = it->path().filename().string();
    if (!found.starts_with(name + "-") ||
        found.size() != name.size() + 1 + kRandom)
      continue;
    const int folder = open_folder(it->path());
    if (folder < 0) continue;
    std::error_code ignored;
    if (is_left(folder)) fs::remove_all(it->path(), ignored);
    ::close(folder);
  }
}

// False where another process took the folder for a leftover.
bool lock_own(const fs::path& path, int& lock) {
  lock = open_folder(path);
  if (lock < 0) return errno != ENOENT;
  if (lock_new(lock)) return true;
  ::close(std::exchange(lock, -1));
  return false;
}

}  // namespace

// mkdtemp() makes it for this user alone (mode 0700), under a name that nobody
// can have taken before.
TemporaryFolder::TemporaryFolder(const std::string& origin,
                                 const std::string& name) {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (!error) remove_left_folders(place, name);
  do {
    std::string path =
        (place / (name + "-" + std::string(kRandom, 'X'))).string();
    if (error || mkdtemp(path.data()) == nullptr)
      throw CheckpointError(
          "[{}] {}: cannot be made. Hint: TMPDIR names a folder", origin, path);
    path_ = path;
  } while (!lock_own(path_, lock_));
}

// Under a name that no search for leftovers matches.
const fs::path& TemporaryFolder::keep() {
  if (is_kept_) return path_;
  const std::string name = path_.filename().string();
  const fs::path kept =
      path_.parent_path() / (name.substr(0, name.size() - kRandom) + "kept-" +
                             name.substr(name.size() - kRandom));
  std::error_code error;
  fs::rename(path_, kept, error);
  if (!error) path_ = kept;
  is_kept_ = true;
  return path_;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!is_kept_) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace chexnet
