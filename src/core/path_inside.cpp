#include "chexnet/core/path_inside.hpp"

#include <algorithm>

namespace chexnet {
namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& folder) {
  const fs::path inner = fs::weakly_canonical(fs::absolute(path)),
                 outer = fs::weakly_canonical(fs::absolute(folder) / "");
  const fs::path root = outer.filename().empty() ? outer.parent_path() : outer;
  return std::mismatch(root.begin(), root.end(), inner.begin(), inner.end())
             .first == root.end();
}

}  // namespace chexnet
