// Writes that are either complete or absent. Failures carry the path, the
// system's reason (disk full, quota, read-only) and a hint.
//
// A file has no name until it is complete (O_TMPFILE), or one that cannot be
// guessed where the file system has no such files; it is created exclusively,
// never through a link, with its final mode from the start. So nobody who may
// write in the same folder can have another file overwritten. kill -9 leaves
// nothing, but for a file that was just replacing another, or where the file
// system has no such files: remove_left_partials() finds it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace chexnet {

// A file written in pieces, which replaces `path` at commit(). Without commit()
// nothing stays and `path` is as it was. /dev/stdout, /dev/fd/N (also
// >(command)) and /dev/null are written directly; any other pipe or device is
// replaced. CheckpointError at any step.
class OutputFile {
 public:
  // `mode`: exactly these permissions; else those the umask leaves.
  // `chosen_by`: the option or key that says where, for the hint of an error.
  explicit OutputFile(std::filesystem::path path,
                      std::optional<unsigned> mode = {},
                      std::string chosen_by = "--out");
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) {
    write(std::as_bytes(std::span(text.data(), text.size())));
  }
  // fsync, then the name. The folder is not synced.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::filesystem::path path_;
  // Empty while the file has no name, or is a device.
  std::filesystem::path temporary_;
  std::string chosen_by_;
  bool direct_ = false;
  int fd_ = -1;
};

// An OutputFile of one piece, and fsync of its folder.
void write_atomically(const std::filesystem::path& path, std::string_view text,
                      std::optional<unsigned> mode = {},
                      const std::string& chosen_by = "--out");
// Files that this process makes from now on are for owner and group (umask
// 007): results of patients are not for everybody. Returns the umask before.
unsigned hide_from_others();
void sync_file(const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& path);

// ".NAME.<random>" beside `path`: a name that cannot be guessed, with the
// begin of a long NAME alone.
std::filesystem::path unforeseeable_name(const std::filesystem::path& path);

// A folder under a hidden name beside `path`, gone with this object.
class PartialFolder {
 public:
  // CheckpointError.
  explicit PartialFolder(const std::filesystem::path& path);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void was_renamed() { path_.clear(); }  // it stays

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Removes from `folder` what killed processes left of an OutputFile or a
// PartialFolder, and nothing that a living one still writes. Errors are passed
// over.
void remove_left_partials(const std::filesystem::path& folder);

}  // namespace chexnet
