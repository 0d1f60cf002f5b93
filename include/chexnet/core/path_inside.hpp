// Whether one path lies inside another.
#pragma once

#include <filesystem>

namespace chexnet {

// Of real paths, by components: no link and no `..` hides that `path` is inside
// `folder`, set2/ is not inside set/, and a folder is inside itself. Neither
// has to exist. Throws filesystem_error.
bool is_inside(const std::filesystem::path& path,
               const std::filesystem::path& folder);

}  // namespace chexnet
