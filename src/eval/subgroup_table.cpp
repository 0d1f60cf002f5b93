#include "chexnet/eval/subgroup_table.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/table_column.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {

// age, sex and view are what the manifest knows under these names whatever the
// table calls them; any other word is a column of the table.
std::vector<std::string> group_values(const Manifest& manifest,
                                      const std::string& column,
                                      const std::vector<int>& bands) {
  const std::string word = lowered(column);
  std::vector<std::string> values;
  if (word == "age")
    values = age_bands(manifest.ages, bands);
  else if (word == "sex")
    values = manifest.sexes;
  else if (word == "view")
    values = manifest.views;
  else
    return table_column(manifest, column);
  if (std::ranges::all_of(values, [](const auto& v) { return v.empty(); }))
    throw DataError(
        "[subgroups] {}: the {} of no image is known. Hint: "
        "--set data.manifest.columns.{}=NAME names its column",
        manifest.path, word, word);
  return values;
}

SubgroupTable subgroup_table(const Predictions& predictions,
                             const std::vector<std::string>& findings,
                             const Manifest& manifest,
                             const std::string& column,
                             const std::vector<std::string>& values,
                             const BootstrapOptions& options) {
  const ScoredColumns scored = scored_columns(predictions, findings);
  std::vector<std::string> own;
  for (const auto i : scored.rows)
    own.push_back(values[manifest.rows.at(predictions.images[i])]);
  SubgroupTable table{column, {}, {}};
  std::vector<LabeledScores> columns;
  for (const auto& c : scored.columns) {
    table.findings.push_back(c.finding);
    columns.push_back({c.scores, c.labels});
  }
  table.of = subgroups_of(columns, own, patients_of(predictions, scored.rows),
                          options);
  return table;
}

}  // namespace chexnet
