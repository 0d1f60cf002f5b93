#include "private_files.hpp"

#include "chexnet/core/error.hpp"
#include "chexnet/core/path_inside.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const fs::path& path, const std::string& what,
                         const std::string& hint) {
  throw CheckpointError("[dicom] {}: {}. Hint: {}", path.string(), what, hint);
}

}  // namespace

fs::path beside(const fs::path& set, const char* ending) {
  fs::path name = fs::absolute(set).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  name += ending;
  return name;
}

void require_outside(const fs::path& file, const fs::path& set) {
  if (is_inside(file, set))
    refuse(file, "is inside the set, which is passed on",
           "name a place outside of " + set.string() +
               " with --key-file and --map-file");
}

}  // namespace chexnet
