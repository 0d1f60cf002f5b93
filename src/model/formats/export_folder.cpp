#include "chexnet/model/formats/export_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// "runs/x/" is "runs/x".
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

std::map<std::string, std::string> sums_of(const fs::path& folder) {
  std::map<std::string, std::string> sums;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      sums[entry.path().lexically_relative(folder)] = sha256_file(entry.path());
  return sums;
}

}  // namespace

void ExportFolder::refuse(const std::string& what,
                          const std::string& hint) const {
  throw CheckpointError("[{}] {}: {}. Hint: {}", origin_, path_.string(), what,
                        hint);
}

ExportFolder::ExportFolder(std::string origin, const fs::path& path)
    : origin_(std::move(origin)), path_(without_slash(path)) {
  std::error_code error;
  const auto status = fs::symlink_status(path_, error);
  const bool free = status.type() == fs::file_type::not_found ||
                    (fs::is_directory(status) && fs::is_empty(path_, error));
  if (!free)
    refuse("is there already, and nothing in it is replaced",
           "name a folder that is new or empty");
  const fs::path beside = fs::absolute(path_).parent_path();
  if (::access(beside.c_str(), W_OK | X_OK) != 0)
    refuse(
        std::string("no folder can be made beside it: ") + std::strerror(errno),
        "name one in a folder that is there and writable");
  remove_left_partials(beside);
  hidden_.emplace(path_);
}

fs::path ExportFolder::file(const std::string& name) const {
  fs::path path = hidden_->path() / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) refuse(error.message(), "is there room on the disk?");
  return path;
}

void ExportFolder::write(const std::string& name, std::string_view bytes) {
  write_atomically(file(name), bytes);
}

std::map<std::string, std::string> ExportFolder::commit() {
  auto sums = sums_of(hidden_->path());
  std::string text;
  for (const auto& [name, sum] : sums) text += sum + "  " + name + "\n";
  write("SHA256SUMS", text);
  std::error_code error;
  fs::rename(hidden_->path(), path_,
             error);  // replaces an empty folder, and no other
  if (error) refuse(error.message(), "name a folder that is new");
  hidden_->was_renamed();
  sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
  return sums;
}

}  // namespace chexnet
