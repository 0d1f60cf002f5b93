// The folders that predict fills (heat maps, DICOM results), each held once,
// also where both options name it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/core/result_folder.hpp"
#include "chexnet/data/input_images.hpp"

namespace chexnet {

// Of heat maps, their list, reports and captures.
bool is_result_of_predict(std::string_view name);

struct PredictFolders {
  std::string heat_maps, dicom;  // empty: none is wanted
};

// Before the work; changes nothing. Errors as ResultFolder::check().
void check_folders(const PredictFolders& folders);
// ConfigError where one is inside the folder `input`: files written there would
// be scored the next time.
void refuse_inside(const PredictFolders& folders, const std::string& input);
// For files named one by one we cannot know whether their folder will be
// scored: a warning.
void warn_of_inputs_around(const PredictFolders& folders,
                           const std::vector<InputPlace>& inputs);

// Rank 0: makes them, and removes what killed commands left in them.
class HeldFolders {
 public:
  explicit HeldFolders(const PredictFolders& folders);
  void finish();  // as ResultFolder

 private:
  std::vector<std::unique_ptr<ResultFolder>> held_;
};

}  // namespace chexnet
