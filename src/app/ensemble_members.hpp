// The runs that an ensemble is made of, read and checked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/data/split_table.hpp"

namespace chexnet {

struct Member {
  std::filesystem::path folder, model;
  std::string name = {};  // of the folder; its path where several have it
  Config config;
  Json results;
  std::vector<SplitRow> rows;  // of split.csv
};

// The value at `place` ("/a/b") of results.json; null where there is none.
const Json& in_results(const Member& member, const std::string& place);

// Of runs, or folders of runs, of which those without final scores are left
// out, with a warning. Warns of folds that are missing.
// ConfigError: fewer than two, too many, scored otherwise than the first.
// CheckpointError: one that was named has not finished, or goes on since it was
// scored. DataError: they call patients by several keys.
std::vector<Member> ensemble_members(const std::vector<std::string>& folders);
// The images of all. An image has the split in the ensemble that it has in the
// member nearest to training: if one was trained on it, the ensemble was.
// DataError: an image has two patients.
std::vector<SplitRow> rows_of(const std::vector<Member>& members);

}  // namespace chexnet
