// split.csv of a run: which image, and so which patient, was in which split.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/data/manifest.hpp"
#include "chexnet/data/patient_ids.hpp"
#include "chexnet/data/split.hpp"

namespace chexnet {

struct SplitRow {
  std::string image, patient, split;
};
std::vector<SplitRow> split_rows(const Manifest& manifest, const Splits& splits,
                                 const PatientIds& ids);
// Beside it PATH.sha256, as sha256sum writes it: a table that lost some lines
// would answer that a patient was not trained on.
void write_splits_csv(const std::filesystem::path& path,
                      const std::vector<SplitRow>& rows);
// DataError when the file is no such table, damaged, or not the one that its
// sum is of. Without a sum (a copy of the table alone) it is taken as it is.
std::vector<SplitRow> read_splits_csv(const std::filesystem::path& path);

// How the patients of these rows are called; nothing where it is by pseudonyms
// of a key that is not at hand.
std::optional<PatientIds> ids_of(const std::vector<SplitRow>& rows,
                                 const PrivacyConfig& config);

// For a run that writes `path`: as the config says. ConfigError where the table
// is there, with pseudonyms of another key: by a new one nobody could find its
// patients again. A table that is damaged, or no file, does not count.
PatientIds ids_for(const Config& config, const std::filesystem::path& path);

}  // namespace chexnet
