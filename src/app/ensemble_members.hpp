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
  std::string name =
      {};  // of the folder; its path where several have that name
  Config config;
  Json results;
  std::vector<SplitRow> rows;  // of split.csv
};

// What results.json has at `place` ("/a/b"); null where there is no such.
const Json& in_results(const Member& member, const std::string& place);

// Of runs, or folders of runs, of which those without final scores are left
// out, with a warning. Warns of folds that are missing, and of equal networks.
// ConfigError: fewer than two, too many, other eval.crops than the first.
// CheckpointError: one that was named has not finished, or goes on since it was
// scored. DataError: patients cannot be compared among them.
std::vector<Member> ensemble_members(const std::vector<std::string>& folders);

}  // namespace chexnet
