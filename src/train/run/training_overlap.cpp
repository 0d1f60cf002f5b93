#include "chexnet/train/run/training_overlap.hpp"

#include <optional>
#include <string>
#include <unordered_set>

#include "chexnet/data/split_table.hpp"

namespace chexnet {

// By the names of images and, where both tables know patients, by patients: a
// table from elsewhere may name the same pictures without saying whose they
// are.
TrainingOverlap training_overlap(const std::filesystem::path& split_csv,
                                 const PrivacyConfig& privacy,
                                 const Manifest& manifest,
                                 const std::vector<uint32_t>& rows) {
  std::vector<SplitRow> table = read_splits_csv(split_csv);
  std::optional<PatientIds> ids;
  if (manifest.knows_patients) ids = ids_of(table, privacy);
  std::unordered_set<std::string> images, patients, validation;
  for (auto& row : table) {
    if (row.split == "val") validation.insert(row.image);
    if (row.split != "train") continue;
    images.insert(std::move(row.image));
    patients.insert(std::move(row.patient));
  }
  TrainingOverlap overlap;
  overlap.knows_patients = ids.has_value();
  for (const auto row : rows) {
    const bool known_image = images.contains(manifest.images[row]);
    const bool known_patient =
        ids && patients.contains(ids->in_files(manifest.patients[row]));
    if (validation.contains(manifest.images[row])) ++overlap.of_validation;
    if (known_image) ++overlap.images;
    if (known_image || known_patient) ++overlap.of_patients;
  }
  return overlap;
}

}  // namespace chexnet
