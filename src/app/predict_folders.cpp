#include "predict_folders.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/path_inside.hpp"
#include "chexnet/core/text_parts.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// The beginning of its messages.
using NamedFolder = std::pair<const char*, std::string>;

std::vector<NamedFolder> wanted(const PredictFolders& folders) {
  std::vector<NamedFolder> all = {{"heat maps", folders.heat_maps},
                                  {"dicom", folders.dicom}};
  std::set<fs::path> seen;
  std::erase_if(all, [&](const NamedFolder& folder) {
    return folder.second.empty() ||
           !seen.insert(fs::weakly_canonical(folder.second)).second;
  });
  return all;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return !is_s3(path) && fs::is_directory(path, error);
}

}  // namespace

// "000012_chest_05_Mass.png", "000003_IM0001.dcm"
bool is_result_of_predict(std::string_view name) {
  constexpr size_t kDigits = 6;
  if (name == "heatmaps.csv") return true;
  return name.size() > kDigits && name[kDigits] == '_' &&
         std::ranges::all_of(name.substr(0, kDigits),
                             [](char c) { return c >= '0' && c <= '9'; }) &&
         (name.ends_with(".png") || name.ends_with(".dcm"));
}

void check_folders(const PredictFolders& folders) {
  for (const auto& [origin, folder] : wanted(folders))
    ResultFolder::check(origin, folder, is_result_of_predict);
}

void refuse_inside(const PredictFolders& folders, const std::string& input) {
  if (!is_folder(input)) return;
  for (const auto& [origin, folder] : wanted(folders))
    if (is_inside(folder, input))
      throw ConfigError(
          "[predict] {} is to be written inside the input {}, where it would "
          "be scored the next time. Hint: name a folder beside it",
          folder, input);
}

// A name without a folder is in the working folder, as always.
void warn_of_inputs_around(const PredictFolders& folders,
                           const std::vector<InputPlace>& inputs) {
  const auto all = wanted(folders);
  std::set<fs::path> around;
  for (const auto& input : inputs)
    if (!all.empty() && !is_folder(input.path))
      around.insert(fs::path(input.path).parent_path());
  around.erase("");
  for (const auto& [origin, folder] : all) {
    const auto found = std::ranges::find_if(
        around, [&](const auto& place) { return is_inside(folder, place); });
    if (found != around.end())
      log_warning("[predict] " + folder + " is written inside " +
                  found->string() +
                  ", which holds images of this input: whoever names that "
                  "folder has it scored with them. Hint: a folder beside it");
  }
}

HeldFolders::HeldFolders(const PredictFolders& folders) {
  for (const auto& [origin, folder] : wanted(folders))
    held_.push_back(
        std::make_unique<ResultFolder>(origin, folder, is_result_of_predict));
}

void HeldFolders::finish() {
  for (const auto& folder : held_) folder->finish();
}

}  // namespace chexnet
