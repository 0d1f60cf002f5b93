// The path of a file of this checkout. A function and no macro: what a compiler
// cache keeps of a test then fits any clone.
#pragma once

#include <string>

namespace chexnet {

// `name` counts from the top folder, as "docs/config.md"; "" is the folder.
std::string source_file(const std::string& name);

}  // namespace chexnet
