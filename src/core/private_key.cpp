#include "chexnet/core/private_key.hpp"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const KeyUse& use, const fs::path& path,
                         const std::string& what, const std::string& hint) {
  throw CheckpointError("[{}] {}: {}. Hint: {}", use.origin, path.string(),
                        what, hint);
}

// A key that somebody else makes at the same time wins.
void make_key(const fs::path& path, const KeyUse& use) {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    refuse(use, path, "no random numbers for a key",
           "openssl rand 32 shows why");
  const fs::path temporary = unforeseeable_name(path);
  write_atomically(temporary, std::string(bytes.begin(), bytes.end()), 0600);
  const int rc = ::link(temporary.c_str(), path.c_str());
  const int error = errno;
  ::unlink(temporary.c_str());
  if (rc != 0 && error != EEXIST)
    refuse(use, path, std::string("cannot be made: ") + std::strerror(error),
           "choose another " + use.option);
  if (rc == 0)
    log_info("made a new key for pseudonyms: " + path.string() +
             " (keep it private, and keep it)");
}

}  // namespace

// We check the opened file, so nobody can replace it between check and read.
// O_NONBLOCK: a pipe of that name must not block us.
std::string read_key(const fs::path& path, const KeyUse& use) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_unreadable(use.origin, path.string(), errno);
  struct stat info {};
  std::array<std::byte, 4096> bytes{};
  const bool looked_at = ::fstat(fd, &info) == 0;
  const bool own = looked_at && S_ISREG(info.st_mode) &&
                   info.st_uid == ::geteuid() && (info.st_mode & 077) == 0;
  const auto size = own ? read_at(fd, 0, bytes) : 0;
  ::close(fd);
  if (!own)
    refuse(
        use, path,
        "is no key of this user alone: who can read it can undo the pseudonyms",
        "chmod 600 if it is yours, else choose another " + use.option);
  if (size < 16)
    throw DataError(
        "[{}] {} holds only {}. Hint: a key has at least 16 bytes, e.g. head "
        "-c 32 /dev/urandom",
        use.origin, path.string(), counted(size, "byte"));
  return {reinterpret_cast<const char*>(bytes.data()),
          static_cast<size_t>(size)};
}

std::string read_or_make_key(const fs::path& path, const KeyUse& use) {
  if (!fs::exists(path)) make_key(path, use);
  return read_key(path, use);
}

std::string keyed_digits(const std::string& key, const std::string& id) {
  const std::string digest = hmac_sha256(key, id);
  return hex_text(std::as_bytes(std::span(digest)).first(8));
}

}  // namespace chexnet
