// Lists first, then the cut: validation patients are drawn from what is left
// for training, by the sorted names of patients and not by rows, so the order
// of a table changes nothing. At the end no patient may be in two splits,
// wherever the rows came from.
#include "chexnet/data/split.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/philox.hpp"

namespace chexnet {
namespace {

std::vector<std::uint32_t> rows_of_list(const Manifest& manifest,
                                        const std::string& path) {
  std::vector<std::uint32_t> rows;
  for (const auto& name : list_lines(read_text(path))) {
    const auto found = manifest.rows.find(name);
    if (found == manifest.rows.end())
      throw DataError(
          "[split] " + path + ": name " + std::to_string(rows.size() + 1) +
          " of it is not in " + manifest.path +
          ". Hint: list and table belong to different data sets; evaluate "
          "--manifest scores a table without lists");
    rows.push_back(found->second);
  }
  if (rows.empty())
    throw DataError("[split] " + path +
                    ": no names. Hint: one image name per line");
  return rows;
}

// Moves `fraction` of the patients of `train` to `val`, both in table order.
void cut_by_patient(const Manifest& manifest, double fraction,
                    std::uint64_t seed, std::vector<std::uint32_t>& train,
                    std::vector<std::uint32_t>& val) {
  std::set<std::string> unique;
  for (const auto row : train) unique.insert(manifest.patients[row]);
  std::vector<std::string> patients(unique.begin(), unique.end());
  Random random(seed, Purpose::kSplit, 0);
  shuffle(patients, random);
  const auto count = static_cast<std::size_t>(
      std::llround(fraction * static_cast<double>(patients.size())));
  const std::set<std::string> chosen(
      patients.begin(), patients.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<std::uint32_t> kept;
  for (const auto row : train)
    (chosen.contains(manifest.patients[row]) ? val : kept).push_back(row);
  train = std::move(kept);
}

void seal(const Manifest& manifest, const char* name, Split& split) {
  split.name = name;
  Sha256 sum;
  for (const auto row : split.rows) {
    sum.update(manifest.images[row]);
    sum.update("\n");
  }
  split.sha256 = sum.hex();
}

std::size_t check_leaks(const Manifest& manifest, const Splits& splits,
                        bool allowed) {
  std::unordered_map<std::uint32_t, const Split*> image_in;
  struct First {
    const Split* split;
    std::uint32_t row;
  };
  std::unordered_map<std::string, First> patient_in;
  std::map<std::string, std::string>
      leaked;  // patient -> "t.csv:3 in train and t.csv:17 in test"
  for (const Split* split : {&splits.train, &splits.val, &splits.test}) {
    for (const auto row : split->rows) {
      const auto [image, is_new] = image_in.emplace(row, split);
      if (!is_new)
        throw DataError("[split] the image of " + manifest.place(row) +
                        " is listed twice (" + image->second->name + ", " +
                        split->name + "). Hint: remove one");
      const auto [patient, is_first] =
          patient_in.emplace(manifest.patients[row], First{split, row});
      const auto& [other, other_row] = patient->second;
      if (!is_first && other != split)
        leaked.emplace(manifest.patients[row],
                       manifest.place(other_row) + " in " + other->name +
                           " and " + manifest.place(row) + " in " +
                           split->name);
    }
  }
  if (!leaked.empty() && !allowed)
    throw DataError(
        "[split] " + std::to_string(leaked.size()) +
        " patients are in two splits, e.g. that of " + leaked.begin()->second +
        ": scores would be too good. Hint: split by patient, or accept it with "
        "data.allow_patient_leak=true");
  return leaked.size();
}

}  // namespace

const Split& Splits::named(const std::string& name) const {
  for (const Split* split : {&train, &val, &test})
    if (split->name == name) return *split;
  throw ConfigError("[split] no split '" + name +
                    "'. Hint: train, val or test");
}

Splits make_splits(const Manifest& manifest, const DataConfig& config) {
  Splits splits;
  if (!config.test_list.empty())
    splits.test.rows = rows_of_list(manifest, config.test_list);
  if (!config.val_list.empty())
    splits.val.rows = rows_of_list(manifest, config.val_list);
  if (!config.train_list.empty()) {
    splits.train.rows = rows_of_list(manifest, config.train_list);
  } else {
    std::set<std::uint32_t> taken(splits.test.rows.begin(),
                                  splits.test.rows.end());
    taken.insert(splits.val.rows.begin(), splits.val.rows.end());
    for (std::uint32_t row = 0; row < manifest.size(); ++row)
      if (!taken.contains(row)) splits.train.rows.push_back(row);
  }
  if (config.val_list.empty())
    cut_by_patient(manifest, config.val_fraction,
                   static_cast<std::uint64_t>(config.split_seed),
                   splits.train.rows, splits.val.rows);
  seal(manifest, "train", splits.train);
  seal(manifest, "val", splits.val);
  seal(manifest, "test", splits.test);
  splits.leaked_patients =
      check_leaks(manifest, splits, config.allow_patient_leak);
  return splits;
}

Splits all_as_test(const Manifest& manifest, const std::string& name) {
  Splits splits;
  splits.test.rows.resize(manifest.size());
  std::iota(splits.test.rows.begin(), splits.test.rows.end(), 0u);
  seal(manifest, "train", splits.train);
  seal(manifest, "val", splits.val);
  seal(manifest, name.c_str(), splits.test);
  return splits;
}

void require_training_images(const Splits& splits) {
  if (splits.train.rows.empty())
    throw DataError(
        "[split] no image is left for training. Hint: check the lists and "
        "data.val_fraction");
}

std::string splits_csv(const Manifest& manifest, const Splits& splits) {
  std::string text = "image,patient,split\n";
  for (const Split* split : {&splits.train, &splits.val, &splits.test})
    for (const auto row : split->rows)
      text += csv_field(manifest.images[row]) + "," +
              csv_field(manifest.patients[row]) + "," + split->name + "\n";
  return text;
}

}  // namespace chexnet
