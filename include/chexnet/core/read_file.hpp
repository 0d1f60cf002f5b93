// Whole files and parts of them. Failures carry the path, the system's reason
// and a hint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace chexnet {

// Throws OutageError where errno `error` may pass (EIO, ESTALE, no descriptors
// …), else AbsentError.
[[noreturn]] void throw_unreadable(const std::string& origin,
                                   const std::string& path, int error);
bool may_pass(int error);

// AbsentError, OutageError; DataError for damaged gzip data. .gz files are
// unpacked. A pipe or device is read only where it is named as /dev/stdin,
// /dev/fd/N (also <(command)) or /dev/null; any other is an AbsentError at
// once: somebody may have planted it.
std::string read_text(const std::filesystem::path& path);
// Its first `most` bytes, of a file that is not packed.
std::string read_text_start(const std::filesystem::path& path, size_t most);
void read_bytes(const std::string& path, std::vector<std::byte>& into);
// Fills `into` from `offset` on; returns the bytes read, fewer only at the end
// of the file, or -1 with errno set.
ptrdiff_t read_at(int fd, uint64_t offset, std::span<std::byte> into);

struct FileStart {
  std::vector<std::byte> bytes;
  uint64_t size = 0;  // of the file
};

// The first `count` bytes of a regular file, or all where it is shorter;
// nothing of a pipe or device. AbsentError, OutageError.
FileStart read_start(const std::string& path, size_t count);

}  // namespace chexnet
