// Everything is opened relative to the folder's descriptor, and checked when it
// is open: its owner may replace a file at any time.
#include "foreign_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/read_file.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

// The target of the link `fd`; empty where it is none of this user or of root.
std::string target_of_own_link(int fd) {
  struct stat info {};
  std::array<char, PATH_MAX> target{};
  if (::fstat(fd, &info) != 0 || !is_trusted(info.st_uid)) return "";
  const auto size = ::readlinkat(fd, "", target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<size_t>(size)) : "";
}

}  // namespace

ForeignFolder::ForeignFolder(fs::path path, int fd)
    : path_(std::move(path)), fd_(fd) {
  struct stat info {};
  const int error = fd_ < 0 || ::fstat(fd_, &info) != 0 ? errno : 0;
  if (error != 0) {
    if (fd_ >= 0) ::close(fd_);
    throw_unreadable("doctor", path_.string(), error);
  }
  owner_ = info.st_uid;
}

ForeignFolder::ForeignFolder(const fs::path& path)
    : ForeignFolder(path, ::open(path.c_str(), kFolder)) {}

ForeignFolder::ForeignFolder(ForeignFolder&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      owner_(other.owner_) {}

ForeignFolder::~ForeignFolder() {
  if (fd_ >= 0) ::close(fd_);
}

std::vector<std::string> ForeignFolder::names() const {
  std::vector<std::string> names;
  const fs::path opened = "/proc/self/fd/" + std::to_string(fd_);
  for (const auto& entry : fs::directory_iterator(opened))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

int ForeignFolder::open_file(const std::string& name,
                             std::string& problem) const {
  const int fd = ::openat(fd_, name.c_str(),
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info {};
  if (fd < 0)
    problem = errno == ELOOP ? "is a link" : std::strerror(errno);
  else if (::fstat(fd, &info) != 0)
    problem = std::strerror(errno);
  else if (!S_ISREG(info.st_mode))
    problem = "is no plain file";
  else if (info.st_uid != owner_ && !is_trusted(info.st_uid))
    problem = "belongs to neither the folder's owner nor you";
  if (problem.empty() || fd < 0) return fd;
  ::close(fd);
  return -1;
}

std::string ForeignFolder::problem_of(const std::string& name) const {
  std::string problem;
  const int fd = open_file(name, problem);
  if (fd >= 0) ::close(fd);
  return problem;
}

std::optional<std::string> ForeignFolder::text_of(
    const std::string& name) const {
  std::string problem;
  const int fd = open_file(name, problem);
  if (fd < 0) {
    warn(name, problem);
    return std::nullopt;
  }
  struct stat info {};
  std::string text;
  if (::fstat(fd, &info) == 0) text.resize(static_cast<size_t>(info.st_size));
  const auto got = read_at(fd, 0, std::as_writable_bytes(std::span(text)));
  const int error = errno;
  ::close(fd);
  if (got < 0) throw_unreadable("doctor", (path_ / name).string(), error);
  text.resize(static_cast<size_t>(got));
  return text;
}

std::optional<ForeignFolder> ForeignFolder::inner(
    const std::string& name) const {
  int fd = ::openat(fd_, name.c_str(), kFolder | O_NOFOLLOW);
  const int error = fd < 0 ? errno : 0;
  if (error == ENOENT) return std::nullopt;

  // A link: ENOTDIR, as O_DIRECTORY comes first.
  if (error == ELOOP || error == ENOTDIR) {
    const int link =
        ::openat(fd_, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    const std::string target = link < 0 ? "" : target_of_own_link(link);
    if (link >= 0) ::close(link);
    if (!target.empty()) fd = ::openat(fd_, target.c_str(), kFolder);
  }
  if (fd >= 0) return ForeignFolder(path_ / name, fd);
  warn(name, "is no folder, or a link that another user made");
  return std::nullopt;
}

void ForeignFolder::warn(const std::string& name,
                         const std::string& problem) const {
  log_warning("[doctor] " + (path_ / name).string() + ": " + problem +
              ", so it is left out. Hint: ask the owner of the run to collect "
              "it");
}

}  // namespace chexnet
