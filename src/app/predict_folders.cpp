#include "predict_folders.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// With what its messages begin.
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

HeldFolders::HeldFolders(const PredictFolders& folders) {
  for (const auto& [origin, folder] : wanted(folders))
    held_.push_back(
        std::make_unique<ResultFolder>(origin, folder, is_result_of_predict));
}

void HeldFolders::finish() {
  for (const auto& folder : held_) folder->finish();
}

}  // namespace chexnet
