// The files of a local folder and of those below it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chexnet/data/storage/store.hpp"

namespace chexnet {

// As Store::list(). AbsentError, OutageError; an error in the middle is an
// error.
std::vector<StoredFile> files_below(const std::string& path,
                                    const std::function<void()>& tick);

}  // namespace chexnet
