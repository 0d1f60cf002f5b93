#include "chexnet/core/write_hint.hpp"

#include <cerrno>

namespace chexnet {

std::string write_hint(int error, const std::string& chosen_by) {
  switch (error) {
    case ENOSPC:
      return "free space on that file system, or write elsewhere with " +
             chosen_by;
    case EDQUOT:
      return "your quota is used up: remove files or write elsewhere with " +
             chosen_by;
    case EFBIG:
      return "a file may not get as large there: raise the limit (ulimit -f), "
             "or write to another file system with " +
             chosen_by;
    case EROFS:
    case EACCES:
      return "the folder is not writable: choose another with " + chosen_by;
    case ENOENT:
      return "a folder of this path is missing: make it first, and leave it "
             "where it is while it is in use";
    default:
      return "check the path and its permissions";
  }
}

}  // namespace chexnet
