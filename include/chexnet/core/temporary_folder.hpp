// A folder for this process and user alone (mode 0700) below TMPDIR, which goes
// away with the object.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

class TemporaryFolder {
 public:
  // NAME-<random>. CheckpointError, of `origin`, where it cannot be made.
  TemporaryFolder(const std::string& origin, const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace chexnet
