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

// What results.json has at `place` ("/a/b"); null where there is no such.
const Json& in_results(const Member& member, const std::string& place);

// Of runs, or folders of runs, of which those without final scores are left
// out, with a warning. Warns of folds that are missing.
// ConfigError: fewer than two, too many, other eval.crops than the first.
// CheckpointError: one that was named has not finished, or goes on since it was
// scored. DataError: they call patients by several keys.
std::vector<Member> ensemble_members(const std::vector<std::string>& folders);
// The images of all. What an image is to the ensemble is what it is to the
// member that knows most of it: who was trained on it is trained on it.
// DataError: an image has two patients, so nobody could tell.
std::vector<SplitRow> rows_of(const std::vector<Member>& members);

}  // namespace chexnet
