#include "private_files.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const fs::path& path, const std::string& what,
                         const std::string& hint) {
  throw CheckpointError("[dicom] " + path.string() + ": " + what +
                        ". Hint: " + hint);
}

}  // namespace

fs::path beside(const fs::path& set, const char* ending) {
  fs::path name = fs::absolute(set).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  name += ending;
  return name;
}

// Compared by components of the real paths: no link and no `..` hides that a
// file is inside, and set2/ is not inside set/.
bool is_inside(const fs::path& file, const fs::path& folder) {
  const fs::path inner = fs::weakly_canonical(fs::absolute(file)),
                 outer = fs::weakly_canonical(fs::absolute(folder) / "");
  const fs::path root = outer.filename().empty() ? outer.parent_path() : outer;
  return std::mismatch(root.begin(), root.end(), inner.begin(), inner.end())
             .first == root.end();
}

void require_outside(const fs::path& file, const fs::path& set) {
  if (is_inside(file, set))
    refuse(file, "is inside the set, which is passed on",
           "name a place outside of " + set.string() +
               " with --key-file and --map-file");
}

}  // namespace chexnet
