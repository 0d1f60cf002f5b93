// Links are followed, so a folder may be reached again: a link to a folder
// above would never end and is not entered; any other folder is listed under a
// few of its names (Store::kMostNames) at most.
#include "folder_walk.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"

namespace chexnet {
namespace {

std::string time_text(const timespec& t) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return std::to_string(int64_t{t.tv_sec} * kNanoseconds + t.tv_nsec);
}

StoredFile stored_file(const std::string& path, const struct stat& info) {
  return {path, static_cast<uint64_t>(info.st_size), time_text(info.st_mtim),
          std::to_string(info.st_dev) + "." + std::to_string(info.st_ino) +
              "." + time_text(info.st_ctim)};
}

// One walk through a folder and those below.
class Walk {
 public:
  explicit Walk(const std::function<void()>& tick) : tick_(tick) {}

  std::vector<StoredFile> files(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0)
      throw_unreadable("images", path, errno);
    if (S_ISREG(info.st_mode)) return {stored_file(path, info)};
    if (!S_ISDIR(info.st_mode))  // a pipe would block its reader forever
      throw AbsentError(
          "[images] {}: is a pipe or a device. Hint: name an image file, or a "
          "folder of them",
          path);
    enter(path, info);
    return std::move(files_);
  }

 private:
  using Folder = std::pair<dev_t, ino_t>;

  void enter(const std::string& path, const struct stat& info) {
    const Folder folder(info.st_dev, info.st_ino);
    const bool loops = std::ranges::find(above_, folder) != above_.end();
    if (loops || ++names_[folder] > Store::kMostNames) return;
    above_.push_back(folder);
    for (const auto& name : names_in(path))
      look_at(path + (path.ends_with('/') ? "" : "/") + name);
    above_.pop_back();
  }

  static std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()),
                                                     ::closedir);
    if (folder == nullptr && errno == EACCES) return names;  // lost+found
    if (folder == nullptr) throw_unreadable("images", path, errno);
    for (;;) {
      errno = 0;
      const dirent* found = ::readdir(folder.get());
      if (found == nullptr) break;
      const std::string name = found->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) throw_unreadable("images", path, errno);
    return names;
  }

  void look_at(const std::string& path) {
    tick_();
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      const bool dangles = errno == ENOENT || errno == ELOOP || errno == EACCES;
      if (!dangles) throw_unreadable("images", path, errno);
      return;
    }
    const bool hidden = path[path.rfind('/') + 1] == '.';
    if (S_ISDIR(info.st_mode))
      enter(path, info);
    else if (!hidden && S_ISREG(info.st_mode))
      files_.push_back(stored_file(path, info));
  }

  const std::function<void()>& tick_;
  std::vector<Folder> above_;    // those that the present path leads through
  std::map<Folder, int> names_;  // under which a folder was listed
  std::vector<StoredFile> files_;
};

}  // namespace

std::vector<StoredFile> files_below(const std::string& path,
                                    const std::function<void()>& tick) {
  return Walk(tick).files(path);
}

}  // namespace chexnet
