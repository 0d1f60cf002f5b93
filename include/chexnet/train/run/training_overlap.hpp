// Whether images that are scored are of patients that the network was trained
// on: figures of those are too good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "chexnet/data/manifest.hpp"

namespace chexnet {

struct TrainingOverlap {
  size_t images = 0;         // that were trained on themselves
  size_t of_patients = 0;    // of patients that were trained on, these too
  size_t of_validation = 0;  // that thresholds were chosen on
  // Whether patients were compared, too, and not images alone.
  bool knows_patients = false;
};

// Of the given rows; `split_csv` as splits_csv() wrote it. Patients count where
// the table knows them, and the key of `privacy` made the file's pseudonyms.
// DataError when the file is no such table.
TrainingOverlap training_overlap(const std::filesystem::path& split_csv,
                                 const PrivacyConfig& privacy,
                                 const Manifest& manifest,
                                 const std::vector<uint32_t>& rows);

}  // namespace chexnet
