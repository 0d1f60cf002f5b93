// Places for tests: a scratch folder that goes away, and the X-rays where they
// are present.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "chexnet/core/error.hpp"
#include "support/source_file.hpp"

namespace chexnet {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "chexnet-test-XXXXXX")
            .string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// The folder of real X-rays, or empty with a note that the test skipped.
inline std::filesystem::path xray_folder() {
  const char* named = std::getenv("CHEXNET_XRAY_DIR");
  std::filesystem::path path = named ? named : source_file("../shared/xray");
  if (std::filesystem::exists(path / "nih352")) return path;
  std::cout << "skipped: no X-rays in " << path << " (set CHEXNET_XRAY_DIR)\n";
  return {};
}

// The text of the error that `action` throws, of the given type; empty when it
// throws nothing.
template <class Type, class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Type& e) {
    return e.what();
  }
  return {};
}

}  // namespace chexnet
