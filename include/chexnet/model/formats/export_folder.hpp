// A folder that appears whole or not at all: its files are written into a
// hidden one beside it, which takes its name at commit(). With SHA256SUMS, as
// `sha256sum -c` reads it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "chexnet/core/output_file.hpp"

namespace chexnet {

class ExportFolder {
 public:
  // CheckpointError "[origin] …": `path` is there and not an empty folder, or
  // nothing can be made beside it.
  ExportFolder(std::string origin, const std::filesystem::path& path);
  // Without commit() nothing stays; of a process that was killed, until the
  // next export beside it.

  // That of the files, until commit().
  const std::filesystem::path& hidden() const { return hidden_->path(); }
  // Where files are written; names may have one folder before them.
  std::filesystem::path file(const std::string& name) const;
  void write(const std::string& name, std::string_view bytes);

  // Sums of all files by name, which become those of `path`. CheckpointError,
  // also where `path` has come to be meanwhile.
  std::map<std::string, std::string> commit();

 private:
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& hint) const;
  std::string origin_;
  std::filesystem::path path_;
  std::optional<PartialFolder> hidden_;
};

}  // namespace chexnet
