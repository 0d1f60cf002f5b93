// The libraries that the program was built with, as CMake found them: a line
// for each, NAME|VERSION|LICENCE|HOME (third_party/CMakeLists.txt).
#pragma once

namespace chexnet {

extern const char* const kComponents;

}  // namespace chexnet
