// The order of the steps is the order of the report: counts of the splits, the
// published numbers, missing images, results of decoding, duplicates, and
// patients in two splits. `leaks` collects from three of them and is sorted at
// the end.
#include "chexnet/data/audit.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "audit_published.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/parallel.hpp"
#include "name_table.hpp"
#include "near_duplicates.hpp"
#include "picture_note.hpp"

namespace chexnet {
namespace {

// The result of decoding one image.
struct Seen {
  std::string error, size;
  std::string pixels_sha256;
  PictureSketch sketch;
  bool flat = false;
};

Seen look_at(const ImageSource& source, uint32_t row, FetchedImage& fetched,
             GrayImage& image) {
  Seen seen;
  try {
    source.fetch(row, fetched);
    decode_fetched(fetched, {}, image);
  } catch (const DataError& e) {
    seen.error = e.what();
    return seen;
  }
  seen.size =
      std::to_string(image.width()) + " x " + std::to_string(image.height());
  Sha256 sum;
  sum.update(seen.size);
  GrayRange range;
  for (int y = 0; y < image.height(); ++y) {
    const std::span line(image.row(y), static_cast<size_t>(image.width()));
    range.add(line);
    sum.update(std::as_bytes(line));
  }
  seen.pixels_sha256 = sum.hex();
  seen.flat = range.one_gray();
  if (!seen.flat) seen.sketch = sketch_of(image);
  return seen;
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

// Tables and lists of the config lie beside the images in many data sets.
std::set<std::string> tables_and_lists(const DataConfig& config) {
  std::set<std::string> own;
  for (const auto& path : config.manifest.path) own.insert(real_path(path));
  for (const auto& path : {config.train_list, config.val_list, config.test_list,
                           config.exclude, config.finding_names})
    if (!path.empty()) own.insert(real_path(path));
  return own;
}

// Decodes every picture of the splits once and keeps the facts by its index in
// `present`.
class Auditor {
 public:
  Auditor(const Manifest& manifest, const Splits& splits)
      : m_(manifest), splits_(splits) {
    for (const Split* split : {&splits.train, &splits.val, &splits.test})
      for (const auto row : split->rows) split_of_[row] = split->name.c_str();
  }

  void count_splits() {
    for (const Split* split : {&splits_.train, &splits_.val, &splits_.test}) {
      if (split->rows.empty()) continue;
      audit.splits.push_back(count_split(m_, split->name, split->rows));
    }
  }

  // Which images are there: fills missing and unlisted. Rows not in a split are
  // nobody's concern.
  ImageSource find(const DataConfig& config, Stores& stores) {
    std::vector<Container> containers;
    const auto found = find_images(config.images, stores, containers);
    const auto own = tables_and_lists(config);
    std::vector<uint32_t> wanted, missing;
    std::unordered_set<std::string> names;
    for (uint32_t row = 0; row < m_.size(); ++row) {
      names.emplace(last_part(m_.images[row]));
      if (split_of_.contains(row)) wanted.push_back(row);
    }
    ImageSource source(
        ImageIndex::match(m_, wanted, found, containers, missing), stores);

    for (const auto row : missing) audit.missing.push_back(m_.images[row]);
    for (const auto row : wanted)
      if (source.index().has(row)) present_.push_back(row);
    for (const auto& image : found)
      if (!names.contains(std::string(last_part(image.name))) &&
          !own.contains(real_path(image.name)))
        audit.unlisted.push_back(image.name);
    return source;
  }

  void look_at_all(const ImageSource& source, int threads,
                   const std::function<void(size_t, size_t)>& progress) {
    struct Scratch {
      FetchedImage fetched;
      GrayImage image;
    };
    seen_.resize(present_.size());
    std::atomic<size_t> done = 0;
    const auto look = [&](size_t i, Scratch& scratch) {
      seen_[i] = look_at(source, present_[i], scratch.fetched, scratch.image);
      ++done;
    };
    parallel_for_with<Scratch>(present_.size(), threads, look,
                               [&] { progress(done, present_.size()); });
  }

  // Damage, sizes, flat pictures.
  void sort_by_what_was_seen() {
    for (size_t i = 0; i < present_.size(); ++i) {
      const Seen& seen = seen_[i];
      if (!seen.error.empty()) {
        audit.corrupt.push_back(seen.error);
        continue;
      }
      ++audit.sizes[seen.size];
      if (seen.flat) audit.flat.push_back(m_.images[present_[i]]);
      same_[seen.pixels_sha256].push_back(present_[i]);
    }
    const auto usual = std::ranges::max_element(
        audit.sizes, {}, [](const auto& s) { return s.second; });
    for (size_t i = 0; i < present_.size(); ++i) {
      const Seen& seen = seen_[i];
      if (seen.error.empty() && seen.size != usual->first)
        audit.odd_sized.push_back(m_.images[present_[i]] + " (" + seen.size +
                                  ")");
    }
  }

  void find_duplicates() {
    for (const auto& [sum, rows] : same_)
      if (rows.size() > 1)
        audit.duplicates.push_back(alike(rows, "the same picture"));
    std::ranges::sort(audit.duplicates);
  }

  // Of pictures that are the same only one is compared, so they are not nearly
  // the same too.
  void find_near_duplicates() {
    std::vector<PictureSketch> sketches;
    std::vector<const std::vector<uint32_t>*> pictures;
    for (size_t i = 0; i < present_.size(); ++i) {
      const Seen& seen = seen_[i];
      if (!seen.error.empty() || seen.flat) continue;
      const auto& equal = same_.at(seen.pixels_sha256);
      if (equal[0] != present_[i]) continue;
      sketches.push_back(seen.sketch);
      pictures.push_back(&equal);
    }
    for (const auto& group : nearly_same_groups(sketches)) {
      std::vector<uint32_t> rows;
      for (const auto i : group)
        rows.insert(rows.end(), pictures[i]->begin(), pictures[i]->end());
      audit.near_duplicates.push_back(alike(rows, "nearly the same picture"));
    }
    std::ranges::sort(audit.near_duplicates);
  }

  void find_patients_in_two_splits() {
    // [patient]
    std::unordered_map<std::string, std::set<std::string>> splits_of;
    for (const auto& [row, name] : split_of_)
      splits_of[m_.patients[row]].insert(name);
    for (const auto& [patient, in] : splits_of) {
      if (in.size() < 2) continue;
      std::string both;
      for (const auto& name : in) both += (both.empty() ? "" : " and ") + name;
      audit.leaks.push_back("patient " + patient + " is in " + both);
    }
    std::ranges::sort(audit.leaks);
  }

  Audit audit;

 private:
  // The names of pictures that are `what`; a leak where they are in two splits.
  std::vector<std::string> alike(const std::vector<uint32_t>& rows,
                                 const std::string& what) {
    assert(!rows.empty());
    std::vector<std::string> names;
    for (const auto row : rows) names.push_back(m_.images[row]);
    const std::string first = split_of_.at(rows[0]);
    for (size_t i = 1; i < rows.size(); ++i) {
      const std::string other = split_of_.at(rows[i]);
      if (other == first) continue;
      audit.leaks.push_back(names[0] + " (" + first + ") and " + names[i] +
                            " (" + other + ") are " + what);
      break;
    }
    return names;
  }

  const Manifest& m_;
  const Splits& splits_;
  std::unordered_map<uint32_t, const char*> split_of_;  // [row]
  std::vector<uint32_t> present_;  // rows whose image is there
  std::vector<Seen> seen_;         // of present_
  // Rows by their pixels' sum.
  std::unordered_map<std::string, std::vector<uint32_t>> same_;
};

}  // namespace

Audit audit(const DataConfig& config, const Manifest& m, const Splits& splits,
            Stores& stores, int threads,
            const std::function<void(size_t, size_t)>& progress) {
  Auditor auditor(m, splits);
  auditor.count_splits();
  compare_with_published(config.manifest, m, splits, auditor.audit);

  const ImageSource source = auditor.find(config, stores);
  auditor.look_at_all(source, threads, progress);
  auditor.sort_by_what_was_seen();
  auditor.find_duplicates();
  auditor.find_near_duplicates();
  auditor.find_patients_in_two_splits();
  return std::move(auditor.audit);
}

}  // namespace chexnet
