// A folder for this process and user alone (mode 0700) below TMPDIR, which goes
// away with the object. The process holds a lock on it, so folders of killed
// ones are known, and the next of the same name removes them: their files may
// be of patients.
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
  // Neither this object nor another process removes it from now on. Returns
  // path().
  const std::filesystem::path& keep();

 private:
  std::filesystem::path path_;
  int lock_ = -1;  // the folder, opened and locked
  bool is_kept_ = false;
};

}  // namespace chexnet
