// Shared by reading and writing of files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace chexnet {

// "." for a name alone.
std::filesystem::path folder_of(const std::filesystem::path& path);

// CheckpointError with the system's reason and what to do about it.
// `chosen_by`: the option or key by which a person chose the path.
[[noreturn]] void write_failed(const std::filesystem::path& path,
                               const char* what, int error,
                               const std::string& chosen_by = "--out");

// A pipe or device that a person gives on purpose.
bool is_given_stream(const std::filesystem::path& path);

// Locks the file or folder `fd` that this process has just made. False where
// another process was faster, which took it for a leftover because nobody held
// it: it holds the lock, or has removed the file. A file system without locks:
// true.
bool lock_new(int fd);

// ".NAME.<16 hexadecimal digits>.partial", as unforeseeable_name() makes them.
bool is_partial_name(std::string_view name);

}  // namespace chexnet
