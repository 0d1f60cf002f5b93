#include "chexnet/run/training_overlap.hpp"

#include <string>
#include <string_view>
#include <unordered_set>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"

namespace chexnet {

// By the names of images and, where both tables know patients, by patients: a
// table from elsewhere may name the same pictures without saying whose they
// are.
TrainingOverlap training_overlap(const std::filesystem::path& split_csv,
                                 const Manifest& manifest,
                                 const std::vector<uint32_t>& rows) {
  const std::string text = read_text(split_csv);
  CsvReader csv(text);
  std::vector<std::string_view> fields;
  const std::vector<std::string_view> header = {"image", "patient", "split"};
  if (!csv.next(fields) || fields != header)
    throw DataError("[split] " + split_csv.string() +
                    ": does not begin with image,patient,split. Hint: it is "
                    "written by training; without it the check for patients "
                    "that were trained on is left out");
  std::unordered_set<std::string> images, patients, validation;
  while (csv.next(fields)) {
    if (fields.size() != header.size()) continue;
    if (fields[2] == "val") validation.emplace(fields[0]);
    if (fields[2] != "train") continue;
    images.emplace(fields[0]);
    patients.emplace(fields[1]);
  }
  TrainingOverlap overlap;
  for (const auto row : rows) {
    const bool known_image = images.contains(manifest.images[row]);
    const bool known_patient =
        manifest.knows_patients && patients.contains(manifest.patients[row]);
    if (validation.contains(manifest.images[row])) ++overlap.of_validation;
    if (known_image) ++overlap.images;
    if (known_image || known_patient) ++overlap.of_patients;
  }
  return overlap;
}

}  // namespace chexnet
