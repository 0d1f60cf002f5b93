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

// image,patient,split.
std::string splits_csv(const Manifest& manifest, const Splits& splits,
                       const PatientIds& ids);

struct SplitRow {
  std::string image, patient, split;
};
// DataError when the file is no such table, or damaged.
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
