#include "chexnet/data/image_index.hpp"

#include <filesystem>
#include <unordered_map>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// File paths by their last component; hidden files are passed over.
std::unordered_map<std::string, std::vector<std::string>> files_below(
    const std::vector<std::string>& folders) {
  std::unordered_map<std::string, std::vector<std::string>> found;
  for (const auto& folder : folders) {
    std::error_code error;
    fs::recursive_directory_iterator it(folder,
                                        fs::directory_options::follow_directory_symlink |
                                            fs::directory_options::skip_permission_denied,
                                        error);
    if (error)
      throw DataError("[images] " + folder + ": " + error.message() + ". Hint: check data.images");
    for (const auto end = fs::recursive_directory_iterator(); it != end; it.increment(error)) {
      if (error)
        throw DataError("[images] " + folder + ": " + error.message() +
                        ". Hint: check the file system");
      const auto name = it->path().filename().string();
      if (!name.starts_with('.') && !it->is_directory(error))
        found[name].push_back(it->path().string());
    }
  }
  return found;
}

}  // namespace

ImageIndex ImageIndex::scan(const Manifest& manifest, const std::vector<std::uint32_t>& rows,
                            const std::vector<std::string>& folders) {
  const auto files = files_below(folders);
  ImageIndex index;
  index.paths_.resize(manifest.size());
  std::size_t missing = 0;
  std::string examples;
  for (const auto row : rows) {
    const std::string& name = manifest.images[row];
    const auto candidates = files.find(fs::path(name).filename().string());
    std::string path;
    if (candidates != files.end()) {
      for (const auto& candidate : candidates->second) {
        // CheXpert names are paths: the whole name must match, not only its end.
        if (candidate != name && !candidate.ends_with("/" + name)) continue;
        if (!path.empty() && path != candidate)
          throw DataError("[images] " + name + " lies in two places: " + path + " and " +
                          candidate + ". Hint: name only one of the folders in data.images");
        path = candidate;
      }
    }
    if (path.empty() && ++missing <= 3) examples += (examples.empty() ? "" : ", ") + name;
    index.paths_[row] = std::move(path);
  }
  if (missing > 0) {
    std::string where;
    for (const auto& folder : folders) where += (where.empty() ? "" : ", ") + folder;
    throw DataError(
        "[images] " + std::to_string(missing) + " of " + std::to_string(rows.size()) +
        " images are missing below " + where + ", e.g. " + examples +
        ". Hint: unpack all archives, check data.images, or train on lists of what is there");
  }
  return index;
}

std::string ImageIndex::to_text() const {
  std::string text;
  for (const auto& path : paths_) text += path + "\n";
  return text;
}

ImageIndex ImageIndex::from_text(const std::string& text) {
  ImageIndex index;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = text.find('\n', at);
    index.paths_.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return index;
}

}  // namespace chexnet
