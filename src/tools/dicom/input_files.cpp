// The walk keeps a stack of folders, so that one that cannot be read is noted
// and the others are still seen. Links to folders are not followed: no walk
// goes in circles. Sorted at the end, for the order of a folder is its file
// system's.
#include "input_files.hpp"

#include <algorithm>
#include <filesystem>

namespace chexnet {
namespace {

namespace fs = std::filesystem;

void add_entry(const fs::directory_entry& entry, std::vector<fs::path>& folders,
               std::vector<fs::path>& files, InputFiles& found) {
  std::error_code error;
  const bool link = entry.is_symlink(error);
  if (entry.is_directory(error)) {
    if (!link) folders.push_back(entry.path());
  } else if (entry.is_regular_file(error)) {
    files.push_back(entry.path());
  } else if (link && (error || !entry.exists(error))) {
    ++found.broken_links;
  } else {
    ++found.no_files;
  }
}

void add_folder(const std::string& root, InputFiles& found) {
  std::vector<fs::path> folders = {root}, files;
  while (!folders.empty()) {
    const fs::path folder = folders.back();
    folders.pop_back();
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error))
      add_entry(*at, folders, files, found);
    if (error) found.unreadable.push_back(folder.string());
  }
  for (const fs::path& file : files)
    found.files.push_back(
        {file.string(), file.lexically_relative(root).string()});
}

}  // namespace

InputFiles find_input_files(const std::vector<std::string>& arguments) {
  InputFiles found;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (fs::is_directory(argument, error))
      add_folder(argument, found);
    else if (const auto type = fs::status(argument, error).type();
             type == fs::file_type::fifo || type == fs::file_type::socket ||
             type == fs::file_type::character || type == fs::file_type::block)
      found.pipes.push_back(argument);
    else
      found.files.push_back({argument, fs::path(argument).filename().string()});
  }
  std::ranges::sort(found.files, {}, &InputFile::path);
  std::ranges::sort(found.unreadable);
  return found;
}

}  // namespace chexnet
