// Whole-file reads, and writes that are either complete or absent: temporary name, fsync, rename,
// fsync of the folder. Failures carry the path, the system's reason (disk full, quota, read-only)
// and a hint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chexnet {

std::string read_text(const std::filesystem::path& path);  // DataError; .gz files are unpacked
void read_bytes(const std::string& path, std::vector<std::byte>& into);  // DataError
// Fills `into` from `offset` on; returns the bytes read, fewer only at the end of the file, or -1
// with errno set.
std::ptrdiff_t read_at(int fd, std::uint64_t offset, std::span<std::byte> into);

// CheckpointError on failure; nothing half-written stays under `path`.
void write_atomically(const std::filesystem::path& path, std::string_view text);
void sync_file(const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& path);

// A file written in pieces, closed and fsynced by close(); errors at any step throw
// CheckpointError. Removed by the destructor when close() was not reached.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void close();

 private:
  std::filesystem::path path_;
  int fd_;
};

}  // namespace chexnet
