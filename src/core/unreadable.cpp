// Two kinds of reasons not to read: those of the storage, which may pass
// (OutageError: start again), and those of the file itself (AbsentError:
// correct the path).
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {

bool may_pass(int error) {
  switch (error) {
    case EIO:
    case ESTALE:
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOLINK:
    case EREMOTEIO:
    case ETIMEDOUT:
    case ENOTCONN:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ESHUTDOWN:  // of a network file system whose server is away
    case ENODEV:
    case ENXIO:
      return true;
    default:
      return false;
  }
}

void throw_unreadable(const std::string& origin, const std::string& path,
                      int error) {
  const std::string reason = std::strerror(error);
  if (error == EMFILE || error == ENFILE)
    throw OutageError(
        "[{}] {}: cannot be read: {}. Hint: too many open files: raise "
        "ulimit -n",
        origin, path, reason);
  if (may_pass(error))
    throw OutageError(
        "[{}] {}: cannot be read: {}. Hint: the storage does not answer: see "
        "dmesg and the file server; start again when it does",
        origin, path, reason);
  // A run's config keeps paths as they were given.
  std::error_code ignored;
  if (path.find("://") != std::string::npos)
    throw AbsentError(
        "[{}] {}: cannot be read: {}. Hint: only files of a file system are "
        "read here: copy it first",
        origin, path, reason);
  if (error == ENOENT && !path.starts_with('/'))
    throw AbsentError(
        "[{}] {}: cannot be read: {}. Hint: it is relative to the working "
        "folder, {}",
        origin, path, reason, std::filesystem::current_path(ignored).string());
  throw AbsentError(
      "[{}] {}: cannot be read: {}. Hint: check the path and its permissions",
      origin, path, reason);
}

}  // namespace chexnet
