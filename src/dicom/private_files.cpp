#include "private_files.hpp"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const fs::path& path, const std::string& what,
                         const std::string& hint) {
  throw CheckpointError("[dicom] " + path.string() + ": " + what +
                        ". Hint: " + hint);
}

// A key that somebody else makes at the same time wins.
void make_key(const fs::path& path) {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    refuse(path, "no random numbers for a key", "openssl rand 32 shows why");
  const fs::path temporary = unforeseeable_name(path);
  write_atomically(temporary, std::string(bytes.begin(), bytes.end()), 0600);
  const int rc = ::link(temporary.c_str(), path.c_str());
  const int error = errno;
  ::unlink(temporary.c_str());
  if (rc != 0 && error != EEXIST)
    refuse(path, std::string("cannot be made: ") + std::strerror(error),
           "choose another --key-file");
  if (rc == 0)
    log_info("made a new key for pseudonyms: " + path.string() +
             " (keep it private, and keep it)");
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
void require_outside(const fs::path& file, const fs::path& set) {
  const fs::path inner = fs::weakly_canonical(fs::absolute(file)),
                 outer = fs::weakly_canonical(fs::absolute(set) / "");
  const fs::path root = outer.filename().empty() ? outer.parent_path() : outer;
  if (std::mismatch(root.begin(), root.end(), inner.begin(), inner.end())
          .first == root.end())
    refuse(file, "is inside the set, which is passed on",
           "name a place outside of " + set.string() +
               " with --key-file and --map-file");
}

// What is looked at is the opened file, so nobody can put another in its place
// between look and read. O_NONBLOCK: a pipe of that name must not hold us.
std::string read_or_make_key(const fs::path& path) {
  if (!fs::exists(path)) make_key(path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_unreadable("dicom", path.string(), errno);
  struct stat info {};
  std::array<std::byte, 4096> bytes{};
  const bool looked_at = ::fstat(fd, &info) == 0;
  const bool own = looked_at && S_ISREG(info.st_mode) &&
                   info.st_uid == ::geteuid() && (info.st_mode & 077) == 0;
  const auto size = own ? read_at(fd, 0, bytes) : 0;
  ::close(fd);
  if (!own)
    refuse(
        path,
        "is no key of this user alone: who can read it can undo the pseudonyms",
        "chmod 600 if it is yours, else choose another --key-file");
  if (size < 16)
    throw DataError(
        "[dicom] " + path.string() + " holds only " + std::to_string(size) +
        " bytes. Hint: a key has at least 16, e.g. head -c 32 /dev/urandom");
  return {reinterpret_cast<const char*>(bytes.data()),
          static_cast<size_t>(size)};
}

}  // namespace chexnet
