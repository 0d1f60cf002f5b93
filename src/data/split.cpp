// Lists first, then the cut: validation patients are drawn from what is left
// for training, by the sorted names of patients and not by rows, so the order
// of a table changes nothing. At the end no patient may be in two splits,
// wherever the rows came from.
#include "chexnet/data/split.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/table_text.hpp"

namespace chexnet {
namespace {

using Rows = std::vector<uint32_t>;

// Names that data.filter and data.exclude keep out are passed over.
Rows rows_of_list(const Manifest& manifest, const std::string& path) {
  Rows rows;
  size_t names = 0, left_out = 0;
  for (const auto& name : list_lines(table_text(path, manifest.s3))) {
    ++names;
    const auto found = manifest.rows.find(name);
    if (found != manifest.rows.end()) {
      rows.push_back(found->second);
    } else if (manifest.left_out.contains(name)) {
      ++left_out;
    } else {
      throw DataError(
          "[split] {}: name {} of it is not in {}. Hint: list and table belong "
          "to different data sets; evaluate --manifest scores a table without "
          "lists",
          path, names, manifest.path);
    }
  }
  if (names == 0)
    throw DataError("[split] {}: no names. Hint: one image name per line",
                    path);
  if (rows.empty())
    throw DataError(
        "[split] {}: data.filter and data.exclude leave out all of its {} "
        "names. Hint: look at the columns of {}",
        path, left_out, manifest.path);
  return rows;
}

// The rows that their tables, or data.manifest.split, give to `split`.
Rows rows_of_tables(const Manifest& manifest, SplitName split, bool is_folded) {
  Rows rows;
  if (manifest.splits.empty()) return rows;
  for (size_t t = 0; t < manifest.tables.size(); ++t) {
    for (size_t row = manifest.tables[t].first_row; row < manifest.end_row(t);
         ++row) {
      auto of_row = manifest.splits[row];
      // Folds cut a published validation split anew.
      if (is_folded && manifest.tables[t].has_splits &&
          of_row == SplitName::kVal)
        of_row = SplitName::kTrain;
      if (of_row == split) rows.push_back(static_cast<uint32_t>(row));
    }
  }
  return rows;
}

Rows named_rows(const Manifest& manifest, const std::string& list,
                SplitName split, bool is_folded) {
  Rows rows;
  if (!list.empty()) rows = rows_of_list(manifest, list);
  const Rows more = rows_of_tables(manifest, split, is_folded);
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

// The stratum of each patient of `rows`, so that each part gets its proportion:
// the finding of a patient's images that the fewest patients have; K where
// there is none.
std::map<std::string, size_t> rarest_findings(const Manifest& manifest,
                                              const Rows& rows) {
  const size_t findings = manifest.finding_count();
  std::map<std::string, std::set<size_t>> findings_of;
  for (const auto row : rows) {
    auto& of_patient = findings_of[manifest.patients[row]];
    for (size_t k = 0; k < findings; ++k)
      if (manifest.label_row(row)[k] == 1) of_patient.insert(k);
  }
  std::vector<size_t> patients(findings);
  for (const auto& [patient, of_patient] : findings_of)
    for (const size_t k : of_patient) ++patients[k];
  std::map<std::string, size_t> rarest;
  for (const auto& [patient, of_patient] : findings_of) {
    const auto least = std::ranges::min_element(
        of_patient, {}, [&](size_t k) { return patients[k]; });
    rarest[patient] = least == of_patient.end() ? findings : *least;
  }
  return rarest;
}

// Patients of `rows` in a random order that is a pure function of their names,
// seed and `stream`; with data.stratify those of one stratum together.
std::vector<std::string> dealt_patients(const Manifest& manifest,
                                        const Rows& rows,
                                        const DataConfig& config,
                                        uint64_t stream) {
  std::set<std::string> unique;
  for (const auto row : rows) unique.insert(manifest.patients[row]);
  std::vector<std::string> patients(unique.begin(), unique.end());
  Random random(static_cast<uint64_t>(config.split_seed), Purpose::kSplit,
                stream);
  shuffle(patients, random);
  if (config.stratify) {
    const auto strata = rarest_findings(manifest, rows);
    std::ranges::stable_sort(
        patients, {}, [&](const auto& patient) { return strata.at(patient); });
  }
  return patients;
}

// Moves the chosen patients of `train` to `to`, both in table order.
void move_patients(const Manifest& manifest,
                   const std::set<std::string>& chosen, Rows& train, Rows& to) {
  Rows kept;
  for (const auto row : train)
    (chosen.contains(manifest.patients[row]) ? to : kept).push_back(row);
  train = std::move(kept);
}

// `fraction` of the patients: the first ones, or with strata every
// (1 / fraction)-th, which takes that fraction of each stratum to within one.
void cut_fraction(const Manifest& manifest, const DataConfig& config,
                  double fraction, uint64_t stream, Rows& train, Rows& to) {
  const auto patients = dealt_patients(manifest, train, config, stream);
  const auto count = static_cast<size_t>(
      std::llround(fraction * static_cast<double>(patients.size())));
  std::set<std::string> chosen;
  for (size_t i = 0; i < patients.size(); ++i) {
    // Whether i * count / size steps up after i.
    const bool steps =
        (i + 1) * count / patients.size() > i * count / patients.size();
    if (config.stratify ? steps : i < count) chosen.insert(patients[i]);
  }
  move_patients(manifest, chosen, train, to);
}

// Of five folds every fifth patient is in one, so each patient is in one fold,
// and folds differ by at most one patient.
void cut_fold(const Manifest& manifest, const DataConfig& config, Rows& train,
              Rows& to) {
  const auto patients = dealt_patients(manifest, train, config, 0);
  const auto folds = static_cast<size_t>(config.fold.folds);
  if (patients.size() < folds)
    throw DataError("[split] {} for data.fold={}. Hint: choose fewer folds",
                    counted(std::ssize(patients), "patient"),
                    config.fold.text());
  std::set<std::string> chosen;
  for (auto i = static_cast<size_t>(config.fold.number - 1);
       i < patients.size(); i += folds)
    chosen.insert(patients[i]);
  move_patients(manifest, chosen, train, to);
}

[[noreturn]] void refuse_two_ways(const std::string& key,
                                  const std::string& split) {
  throw ConfigError(
      "[config] {}: set beside a list or table of {} images. Hint: choose one",
      key, split);
}

void seal(const Manifest& manifest, const std::string& name, Split& split) {
  split.name = name;
  std::vector<std::string> images;
  for (const auto row : split.rows) images.push_back(manifest.images[row]);
  split.sha256 = names_sha256(images);
}

// An id without leading zeros and ".0", which tables add to numbers; empty for
// an id that is no number.
std::string number_of(std::string_view id) {
  const auto point = id.find('.');
  if (point != std::string_view::npos &&
      id.substr(point + 1).find_first_not_of('0') == std::string_view::npos)
    id = id.substr(0, point);
  if (id.empty() ||
      id.find_first_not_of("0123456789") != std::string_view::npos)
    return {};
  return std::string(
      id.substr(std::min(id.find_first_not_of('0'), id.size() - 1)));
}

// The key that rows of two splits have in common by `key_of`, and where:
// "t.csv:3 in train and t.csv:17 in test". An empty key is none, and `counts`
// says whether a row and the first one with its key do.
std::map<std::string, std::string> in_two_splits(
    const Manifest& manifest, const Splits& splits,
    const std::function<std::string(uint32_t row)>& key_of,
    const std::function<bool(uint32_t first, uint32_t row)>& counts) {
  struct First {
    const Split* split;
    uint32_t row;
  };
  std::unordered_map<std::string, First> first_with;
  std::map<std::string, std::string> found;
  for (const Split* split : {&splits.train, &splits.val, &splits.test}) {
    for (const auto row : split->rows) {
      std::string key = key_of(row);
      if (key.empty()) continue;
      const auto& first =
          first_with.emplace(key, First{split, row}).first->second;
      if (first.split == split || !counts(first.row, row)) continue;
      found.emplace(std::move(key),
                    manifest.place(first.row) + " in " + first.split->name +
                        " and " + manifest.place(row) + " in " + split->name);
    }
  }
  return found;
}

// Ids are compared as they are spelt, so one patient may pass as two.
void warn_of_spellings(const Manifest& manifest, const Splits& splits) {
  const auto& ids = manifest.patients;
  const auto alike = in_two_splits(
      manifest, splits, [&](uint32_t row) { return number_of(ids[row]); },
      [&](uint32_t first, uint32_t row) { return ids[first] != ids[row]; });
  if (alike.empty()) return;
  log_warning("[split] " + counted(std::ssize(alike), "patient") +
              " of two splits have the same number, spelt otherwise "
              "(as 75, 0075 or 75.0), e.g. those of " +
              alike.begin()->second +
              ": if they are one person, scores are too good. Hint: spell an "
              "id alike in all tables");
}

void refuse_images_listed_twice(const Manifest& manifest,
                                const Splits& splits) {
  std::unordered_map<uint32_t, const Split*> image_in;
  for (const Split* split : {&splits.train, &splits.val, &splits.test}) {
    for (const auto row : split->rows) {
      const auto [image, is_new] = image_in.emplace(row, split);
      if (!is_new)
        throw DataError(
            "[split] the image of {} is listed twice ({}, {}). Hint: remove "
            "one",
            manifest.place(row), image->second->name, split->name);
    }
  }
}

size_t check_leaks(const Manifest& manifest, const Splits& splits,
                   bool allowed) {
  refuse_images_listed_twice(manifest, splits);
  const auto leaked = in_two_splits(
      manifest, splits, [&](uint32_t row) { return manifest.patients[row]; },
      [](uint32_t, uint32_t) { return true; });
  if (!leaked.empty() && !allowed)
    throw DataError(
        "[split] {} in two splits, e.g. that of {}: scores would be too good. "
        "Hint: split by patient, or accept it with "
        "data.allow_patient_leak=true",
        counted(static_cast<int64_t>(leaked.size()), "patient"),
        leaked.begin()->second);
  return leaked.size();
}

}  // namespace

const Split& Splits::named(const std::string& name) const {
  for (const Split* split : {&train, &val, &test})
    if (split->name == name) return *split;
  throw ConfigError("[split] no split '{}'. Hint: train, val or test", name);
}

Splits make_splits(const Manifest& manifest, const DataConfig& config) {
  Splits splits;
  const auto named = [&](const std::string& list, SplitName split) {
    return named_rows(manifest, list, split, config.fold.on());
  };
  splits.test.rows = named(config.test_list, SplitName::kTest);
  splits.val.rows = named(config.val_list, SplitName::kVal);
  if (!config.train_list.empty()) {
    splits.train.rows = named(config.train_list, SplitName::kTrain);
  } else {
    std::set<uint32_t> taken(splits.test.rows.begin(), splits.test.rows.end());
    taken.insert(splits.val.rows.begin(), splits.val.rows.end());
    for (uint32_t row = 0; row < manifest.size(); ++row)
      if (!taken.contains(row)) splits.train.rows.push_back(row);
  }
  const bool has_test = !splits.test.rows.empty();
  const bool has_val = !splits.val.rows.empty();
  if (has_test && config.test_fraction > 0)
    refuse_two_ways("data.test_fraction", "test");
  if (has_val && config.fold.on()) refuse_two_ways("data.fold", "validation");
  // Drawn first and alike for every fold.
  if (!has_test)
    cut_fraction(manifest, config, config.test_fraction, 1, splits.train.rows,
                 splits.test.rows);
  if (!has_val && config.fold.on())
    cut_fold(manifest, config, splits.train.rows, splits.val.rows);
  else if (!has_val)
    cut_fraction(manifest, config, config.val_fraction, 0, splits.train.rows,
                 splits.val.rows);
  seal(manifest, "train", splits.train);
  seal(manifest, "val", splits.val);
  seal(manifest, "test", splits.test);
  splits.leaked_patients =
      check_leaks(manifest, splits, config.allow_patient_leak);
  if (manifest.knows_patients) warn_of_spellings(manifest, splits);
  return splits;
}

std::string names_sha256(const std::vector<std::string>& images) {
  Sha256 sum;
  for (const auto& image : images) {
    sum.update(image);
    sum.update("\n");
  }
  return sum.hex();
}

Splits all_as_test(const Manifest& manifest, const std::string& name) {
  Splits splits;
  splits.test.rows.resize(manifest.size());
  std::iota(splits.test.rows.begin(), splits.test.rows.end(), 0u);
  seal(manifest, "train", splits.train);
  seal(manifest, "val", splits.val);
  seal(manifest, name, splits.test);
  return splits;
}

size_t leave_out_missing(const Manifest& manifest, const ImageIndex& images,
                         Split& split) {
  const auto is_missing = [&](uint32_t row) { return !images.has(row); };
  const auto all = split.rows;
  const size_t missing = std::erase_if(split.rows, is_missing);
  if (missing == 0) return 0;
  if (split.rows.empty())
    throw AbsentError(
        "[images] all images of the {} split are missing ({}), e.g. that of "
        "{}. "
        "Hint: check data.images; data.missing=skip leaves out some images, "
        "not a whole split",
        split.name, missing, manifest.place(all.front()));
  seal(manifest, split.name, split);
  return missing;
}

void require_training_images(const Splits& splits) {
  if (splits.train.rows.empty())
    throw DataError(
        "[split] no image is left for training. Hint: check the lists and "
        "data.val_fraction");
}

}  // namespace chexnet
