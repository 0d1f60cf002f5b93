// A folder that may be somebody else's, whose files are to be passed on. Only
// plain files are read, of the folder's owner, this user or root, and never
// through a link: it may lead to what only this user may read.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chexnet {

class ForeignFolder {
 public:
  // As the user names it, so it may be a link.
  explicit ForeignFolder(const std::filesystem::path& path);
  ~ForeignFolder();
  ForeignFolder(ForeignFolder&& other) noexcept;
  ForeignFolder(const ForeignFolder&) = delete;
  ForeignFolder& operator=(const ForeignFolder&) = delete;

  std::vector<std::string> names() const;  // sorted; of files and folders
  // Nothing, and a warning that it is left out, where it is not to be read.
  std::optional<std::string> text_of(const std::string& name) const;
  // Why `name` is not read; empty where it is.
  std::string problem_of(const std::string& name) const;
  // A folder in it, or a link to one that this user or root made. Nothing where
  // there is none; a warning where it is not to be read.
  std::optional<ForeignFolder> inner(const std::string& name) const;

 private:
  ForeignFolder(std::filesystem::path path, int fd);
  int open_file(const std::string& name, std::string& problem) const;
  void warn(const std::string& name, const std::string& problem) const;

  std::filesystem::path path_;
  int fd_;
  uid_t owner_ = 0;
};

}  // namespace chexnet
