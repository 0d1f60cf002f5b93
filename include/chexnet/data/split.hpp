// Which rows of the manifest are for training, validation and test. No patient
// is in two splits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/data/image_index.hpp"
#include "chexnet/data/manifest.hpp"

namespace chexnet {

struct Split {
  std::string name;
  std::vector<uint32_t> rows;
  // names_sha256() of its images: identifies the split whatever the file was
  // called.
  std::string sha256;
};
// SHA-256 of names, one per line.
std::string names_sha256(const std::vector<std::string>& images);

struct Splits {
  Split train, val, test;
  size_t leaked_patients = 0;  // > 0 only with data.allow_patient_leak
  // ConfigError when unknown.
  const Split& named(const std::string& name) const;
};

// Lists and tables (data.manifest.split) as given. Without any for test,
// data.test_fraction of the other patients; without any for validation, fold
// data.fold, or data.val_fraction, of the patients that are left
// for training. All are drawn with data.split_seed, with data.stratify by the
// rarest finding of each patient. Any split may be empty. DataError: a listed
// name the manifest lacks, a name in two lists, a patient in two splits.
// ConfigError: a list or table and a fraction for one split.
Splits make_splits(const Manifest& manifest, const DataConfig& config);
// Every row as the test split, named `name`: for tables that are only scored.
Splits all_as_test(const Manifest& manifest, const std::string& name);
// data.missing=skip: removes the rows that `images` has no location for; the
// split's checksum is of the others. Returns how many it removed; AbsentError
// when none would be left.
size_t leave_out_missing(const Manifest& manifest, const ImageIndex& images,
                         Split& split);
// DataError when there is nothing to train on.
void require_training_images(const Splits& splits);

}  // namespace chexnet
