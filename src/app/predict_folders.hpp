// The folders that predict fills (heat maps, DICOM results), each held once,
// also where both options name it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/core/result_folder.hpp"

namespace chexnet {

// Of heat maps, their list, reports and captures.
bool is_result_of_predict(std::string_view name);

struct PredictFolders {
  std::string heat_maps, dicom;  // empty: none is wanted
};

// Before the work; changes nothing. Errors as ResultFolder::check().
void check_folders(const PredictFolders& folders);

// Rank 0: makes them, and removes what killed commands left in them.
class HeldFolders {
 public:
  explicit HeldFolders(const PredictFolders& folders);
  void finish();  // as ResultFolder

 private:
  std::vector<std::unique_ptr<ResultFolder>> held_;
};

}  // namespace chexnet
