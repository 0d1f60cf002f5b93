#include "chexnet/core/temporary_folder.hpp"

#include <cstdlib>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace fs = std::filesystem;

// mkdtemp() makes it for this user alone (mode 0700), under a name that nobody
// can have taken before.
TemporaryFolder::TemporaryFolder(const std::string& origin,
                                 const std::string& name) {
  std::error_code error;
  std::string path = (fs::temp_directory_path(error) / (name + "-XXXXXX"));
  if (error || mkdtemp(path.data()) == nullptr)
    throw CheckpointError("[" + origin + "] " + path +
                          ": cannot be made. Hint: TMPDIR names a folder");
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace chexnet
