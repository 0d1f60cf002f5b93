// The mark has a text as soon as its command may write: one without a text is
// of a command that wrote nothing.
#include "chexnet/core/result_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "file_places.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMark = "unfinished";
constexpr const char* kNewFolder =
    "name a new folder in a place you may write to";

[[noreturn]] void refuse(const std::string& origin, const fs::path& folder,
                         const std::string& what, const std::string& remedy) {
  throw CheckpointError("[{}] {}: {}. Hint: {}", origin,
                        printable(folder.string()), what, remedy);
}

// All but the mark.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (it->path().filename() != kMark) files.push_back(it->path());
  return files;
}

// `is_marked`: the files may be leftovers of a killed command.
void refuse_others(const std::string& origin, const fs::path& folder,
                   const std::vector<fs::path>& files, bool is_marked,
                   ResultFolder::IsResult is_result) {
  for (const auto& file : files) {
    const std::string name = file.filename().string();
    std::error_code error;
    const bool is_left = is_marked &&
                         fs::is_regular_file(fs::symlink_status(file, error)) &&
                         (is_result(name) || is_partial_name(name));
    if (!is_left)
      refuse(origin, folder,
             "is not an empty folder: " + printable(name) + " lies in it",
             kNewFolder);
  }
}

std::string mark_text() {
  return "Process " + std::to_string(::getpid()) + " began to write here at " +
         utc_time() +
         ". Until this file is gone, not all is here. If that process has "
         "ended, the next one that writes here removes what it left.\n";
}

}  // namespace

// We check the folder, or the nearest one above it that exists.
void ResultFolder::check(const std::string& origin, const fs::path& folder,
                         IsResult is_result) {
  const auto refuse_for = [&](const std::string& what) {
    refuse(origin, folder, what, kNewFolder);
  };
  std::error_code error;
  fs::path place = fs::absolute(folder);
  if (fs::exists(place, error)) {
    if (!fs::is_directory(place, error)) refuse_for("is no folder");
    refuse_others(origin, folder, files_in(place),
                  fs::exists(place / kMark, error), is_result);
  } else if (fs::is_symlink(fs::symlink_status(place, error))) {
    refuse_for("is a link that leads nowhere");
  }
  while (!fs::exists(place, error) && place.has_relative_path())
    place = place.parent_path();
  if (::access(place.c_str(), W_OK | X_OK) != 0)
    refuse_for(std::string("cannot be written: ") + std::strerror(errno));
}

ResultFolder::ResultFolder(const std::string& origin, fs::path folder,
                           IsResult is_result)
    : folder_(std::move(folder)) {
  std::error_code error;
  is_new_ = fs::create_directories(folder_, error);
  if (error) refuse(origin, folder_, error.message(), kNewFolder);
  auto lock = FileLock::try_take(folder_ / kMark);
  if (!lock)
    refuse(origin, folder_, "another command writes to it",
           "wait for its end, or name a new folder");
  lock_.emplace(std::move(*lock));
  const bool is_left = !lock_->text().empty();
  const std::vector<fs::path> files = files_in(folder_);
  // A mark that was there stays where the folder is refused.
  if (is_left) lock_->keep_file();
  refuse_others(origin, folder_, files, is_left, is_result);
  if (is_left && !lock_->excludes_others())
    refuse(origin, folder_,
           "a command has not finished here, and this file system has no locks "
           "to tell whether it still writes",
           kNewFolder);
  for (const auto& file : files)
    if (!fs::remove(file, error) && error)
      refuse(origin, folder_,
             printable(file.filename().string()) +
                 ", which a killed command left, cannot be removed: " +
                 error.message(),
             kNewFolder);
  lock_->write(mark_text());
  lock_->keep_file();
}

ResultFolder::~ResultFolder() {
  if (is_finished_ || !lock_) return;
  if (!files_in(folder_).empty()) return;
  std::error_code ignored;
  fs::remove(folder_ / kMark, ignored);
  if (is_new_) fs::remove(folder_, ignored);
}

void ResultFolder::finish() {
  std::error_code ignored;
  fs::remove(folder_ / kMark, ignored);
  if (is_new_) fs::remove(folder_, ignored);  // where no file was to be made
  is_finished_ = true;
  lock_.reset();
}

}  // namespace chexnet
