// Figures of a prediction for parts of its images, by a column of the table.
#pragma once

#include <string>
#include <vector>

#include "chexnet/data/ages.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/eval/bootstrap.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/eval/subgroups.hpp"

namespace chexnet {

struct SubgroupTable {
  std::string column;                 // as the user named it
  std::vector<std::string> findings;  // [K]
  std::vector<Subgroups> of;          // [K], the same groups in each
};

// What a column gives for each row of the table [N], blank = unknown: "sex" and
// "view" as the format knows them, "age" in bands that begin at `bands`
// (age_bands()); any other name is a column of the table. Errors as
// table_column(); DataError where nothing is known of all of them.
std::vector<std::string> group_values(const Manifest& manifest,
                                      const std::string& column,
                                      const std::vector<int>& bands);

// Of the scored images, for `findings` as in score(). `values`: of the rows of
// `manifest`, which has all images of `predictions`. DataError as
// subgroups_of().
SubgroupTable subgroup_table(const Predictions& predictions,
                             const std::vector<std::string>& findings,
                             const Manifest& manifest,
                             const std::string& column,
                             const std::vector<std::string>& values,
                             const BootstrapOptions& options);

}  // namespace chexnet
