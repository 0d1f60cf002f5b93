// A folder that one command fills with its results. Until all are there a file
// `unfinished` lies in it, which that command has locked: so the next command
// can tell what a killed one left, and removes it, from what a living one
// writes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "chexnet/core/file_lock.hpp"

namespace chexnet {

class ResultFolder {
 public:
  // Whether a file's name is one that such commands write; nothing else is ever
  // removed.
  using IsResult = bool (*)(std::string_view name);

  // Before the work; changes nothing. CheckpointError "[origin] …": it is no
  // folder, holds something else than a killed command's results, or is not
  // writable.
  static void check(const std::string& origin,
                    const std::filesystem::path& folder, IsResult is_result);

  // As check(), and makes and empties the folder. CheckpointError also where
  // another command fills it. One thread.
  ResultFolder(const std::string& origin, std::filesystem::path folder,
               IsResult is_result);
  // An unfinished result stays for the next command to remove; where no file
  // was made, nothing stays.
  ~ResultFolder();
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

  void finish();  // all results are there

 private:
  std::filesystem::path folder_;
  bool is_new_ = false;  // made here
  bool is_finished_ = false;
  std::optional<FileLock> lock_;
};

}  // namespace chexnet
