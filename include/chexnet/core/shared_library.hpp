// Libraries that the program opens after its start.
#pragma once

namespace chexnet {

// dlopen(name, RTLD_NOW | flags). A library, or one that it needs, that is cut
// off (an interrupted copy, a full disk) makes the loader end by SIGBUS: then
// the process ends with exit code 5 and an error that names the file. One call
// at a time.
void* open_shared_library(const char* name, int flags = 0);

}  // namespace chexnet
