#include "chexnet/data/audit.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/name_table.hpp"
#include "chexnet/data/near_duplicates.hpp"

namespace chexnet {
namespace {

// Official lists of ChestX-ray14, v2020 table; the 2017 table differs in the test list, by which it
// is known (Pneumonia 1,353 of all instead of 1,431).
struct Published {
  const char* name;
  std::size_t images, patients, no_finding;
  std::array<std::size_t, 14> positives;
};
constexpr Published kTrainVal{
    "train_val",
    86524,
    28008,
    50500,
    {8280, 1707, 8659, 13782, 4034, 4708, 876, 2637, 2852, 1378, 1423, 1251, 2242, 141}};
constexpr Published kTest{
    "test",
    25596,
    2797,
    9861,
    {3279, 1069, 4658, 6112, 1748, 1623, 555, 2665, 1815, 925, 1093, 435, 1143, 86}};
constexpr std::size_t kAllImages = 112120, kPneumonia2017 = 1353, kPneumonia2020 = 1431;

bool is_positive(float label) { return label > 0.5f; }  // NaN is not

bool positive(const Manifest& m, std::uint32_t row, std::size_t k) {
  return is_positive(m.label_row(row)[k]);
}

// Labels are those of training in the training split, those that are scored elsewhere.
Audit::SplitCounts count(const Manifest& m, const std::string& name,
                         const std::vector<std::uint32_t>& rows) {
  Audit::SplitCounts c;
  c.name = name;
  c.has_no_finding = std::ranges::none_of(m.findings, is_no_finding);
  c.positives.resize(m.finding_count());
  std::unordered_set<std::string> patients;
  for (const auto row : rows) {
    ++c.images;
    patients.insert(m.patients[row]);
    std::vector<std::string> groups;
    if (!m.sexes[row].empty()) groups.push_back("sex " + m.sexes[row]);
    if (!m.views[row].empty()) groups.push_back("view " + m.views[row]);
    if (const float age = m.ages[row]; !std::isnan(age))
      groups.push_back(age < 20   ? "age 0-19"
                       : age < 40 ? "age 20-39"
                       : age < 60 ? "age 40-59"
                       : age < 80 ? "age 60-79"
                                  : "age 80 and over");
    const float* labels = name == "train" ? m.label_row(row) : m.scored_row(row);
    bool any = false, unknown = false;
    for (std::size_t k = 0; k < m.finding_count(); ++k) {
      any = any || is_positive(labels[k]);
      unknown = unknown || std::isnan(labels[k]);
      c.unlabeled_entries += std::isnan(labels[k]) ? 1 : 0;
      c.positives[k] += is_positive(labels[k]) ? 1 : 0;
    }
    c.no_finding += !any && !unknown ? 1 : 0;
    for (const auto& group : groups) {
      auto& g = c.subgroups[group];
      g.positives.resize(m.finding_count());
      ++g.images;
      for (std::size_t k = 0; k < m.finding_count(); ++k)
        g.positives[k] += is_positive(labels[k]) ? 1 : 0;
    }
  }
  c.patients = patients.size();
  return c;
}

void compare(const Manifest& m, const std::vector<std::uint32_t>& rows, const Published& known,
             Audit& audit) {
  const auto c = count(m, known.name, rows);
  const auto differs = [&](const std::string& what, std::size_t got, std::size_t wanted) {
    if (got == wanted) return;
    audit.known_differs = true;
    audit.known.push_back(std::string(known.name) + ": " + what + " " + std::to_string(got) +
                          ", published " + std::to_string(wanted));
  };
  differs("images", c.images, known.images);
  differs("patients", c.patients, known.patients);
  const bool v2017 = known.name == std::string("test") && c.positives[6] < known.positives[6];
  if (v2017) return;  // its 181 other labels are all in this list
  differs("no finding", c.no_finding, known.no_finding);
  for (std::size_t k = 0; k < 14; ++k) differs(m.findings[k], c.positives[k], known.positives[k]);
}

void compare_with_nih(const Manifest& m, const Splits& splits, Audit& audit) {
  if (m.size() != kAllImages || m.findings != nih_findings()) {
    audit.known.push_back("the table has " + std::to_string(m.size()) +
                          " images, not the 112,120 of ChestX-ray14: nothing to compare with");
    return;
  }
  std::size_t pneumonia = 0;
  for (std::uint32_t row = 0; row < m.size(); ++row) pneumonia += positive(m, row, 6) ? 1 : 0;
  audit.known.push_back(pneumonia == kPneumonia2020   ? "labels of the v2020 release"
                        : pneumonia == kPneumonia2017 ? "labels of the 2017 release"
                                                      : "labels of no published release");
  audit.known_differs = pneumonia != kPneumonia2020 && pneumonia != kPneumonia2017;
  if (splits.test.rows.size() != kTest.images) {
    audit.known.push_back("the test list is not the official one");
    return;
  }
  auto train_val = splits.train.rows;
  train_val.insert(train_val.end(), splits.val.rows.begin(), splits.val.rows.end());
  compare(m, train_val, kTrainVal, audit);
  compare(m, splits.test.rows, kTest, audit);
  if (!audit.known_differs) audit.known.push_back("all counts as published");
}

// What decoding one image shows.
struct Seen {
  std::string error, size;
  std::string pixels_sha256;
  PictureSketch sketch;
  bool flat = false;
};

Seen look_at(const ImageSource& source, std::uint32_t row, std::int64_t max_pixels,
             FetchedImage& fetched, GrayImage& image) {
  Seen seen;
  try {
    source.fetch(row, fetched);
    decode_fetched(fetched, {max_pixels, 0}, image);
  } catch (const DataError& e) {
    seen.error = e.what();
    return seen;
  }
  seen.size = std::to_string(image.width()) + " x " + std::to_string(image.height());
  Sha256 sum;
  sum.update(seen.size);
  const std::uint8_t first = *image.row(0);
  seen.flat = true;
  for (int y = 0; y < image.height(); ++y) {
    const std::span line(image.row(y), static_cast<std::size_t>(image.width()));
    seen.flat = seen.flat && std::ranges::all_of(line, [&](auto p) { return p == first; });
    sum.update(std::as_bytes(line));
  }
  seen.pixels_sha256 = sum.hex();
  if (!seen.flat) seen.sketch = sketch_of(image);
  return seen;
}

using SplitOf = std::unordered_map<std::uint32_t, const char*>;

// Pictures that are the same or nearly so; a leak where they are in two splits.
std::vector<std::string> alike(const Manifest& m, const std::vector<std::uint32_t>& rows,
                               const SplitOf& split_of, const std::string& what, Audit& audit) {
  std::vector<std::string> names;
  for (const auto row : rows) names.push_back(m.images[row]);
  const std::string first = split_of.at(rows[0]);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string other = split_of.at(rows[i]);
    if (other == first) continue;
    audit.leaks.push_back(names[0] + " (" + first + ") and " + names[i] + " (" + other + ") are " +
                          what);
    break;
  }
  return names;
}

// `same`: rows by the checksum of their pixels. Of each only one picture is compared, so what is
// the same is not nearly the same too.
void find_near_duplicates(const Manifest& m, const std::vector<std::uint32_t>& rows,
                          const std::vector<Seen>& seen,
                          const std::unordered_map<std::string, std::vector<std::uint32_t>>& same,
                          const SplitOf& split_of, Audit& audit) {
  std::vector<PictureSketch> sketches;
  std::vector<const std::vector<std::uint32_t>*> pictures;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!seen[i].error.empty() || seen[i].flat) continue;
    const auto& equal = same.at(seen[i].pixels_sha256);
    if (equal[0] != rows[i]) continue;
    sketches.push_back(seen[i].sketch);
    pictures.push_back(&equal);
  }
  for (const auto& group : nearly_same_groups(sketches)) {
    std::vector<std::uint32_t> of_group;
    for (const auto i : group)
      of_group.insert(of_group.end(), pictures[i]->begin(), pictures[i]->end());
    audit.near_duplicates.push_back(alike(m, of_group, split_of, "nearly the same picture", audit));
  }
  std::ranges::sort(audit.near_duplicates);
}

}  // namespace

Audit audit(const DataConfig& config, const Manifest& m, const Splits& splits, Stores& stores,
            int threads, const std::function<void(std::size_t, std::size_t)>& progress) {
  Audit audit;
  SplitOf split_of;
  for (const Split* split : {&splits.train, &splits.val, &splits.test}) {
    if (split->rows.empty()) continue;
    audit.splits.push_back(count(m, split->name, split->rows));
    for (const auto row : split->rows) split_of[row] = split->name.c_str();
  }
  if (config.manifest.format == ManifestFormat::kNih) compare_with_nih(m, splits, audit);

  // Which images are there.
  std::vector<Container> containers;
  const auto found = find_images(config.images, stores, containers);
  std::vector<std::uint32_t> wanted, missing, present;
  std::unordered_set<std::string> names;
  for (std::uint32_t row = 0; row < m.size(); ++row) {
    names.emplace(last_part(m.images[row]));
    if (split_of.contains(row)) wanted.push_back(row);
  }
  const ImageSource source(ImageIndex::match(m, wanted, found, containers, missing), stores);
  for (const auto row : missing) audit.missing.push_back(m.images[row]);
  std::ranges::copy_if(wanted, std::back_inserter(present),
                       [&](auto row) { return source.index().has(row); });
  for (const auto& image : found)
    if (!names.contains(std::string(last_part(image.name)))) audit.unlisted.push_back(image.name);

  // Every one of them decoded.
  std::vector<Seen> seen(present.size());
  std::atomic<std::size_t> done = 0;
  parallel_for(
      present.size(), threads,
      [&](std::size_t i) {
        thread_local FetchedImage fetched;
        thread_local GrayImage image;
        seen[i] = look_at(source, present[i], config.max_pixels, fetched, image);
        ++done;
      },
      [&] { progress(done, present.size()); });
  std::unordered_map<std::string, std::vector<std::uint32_t>> same;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const std::string& name = m.images[present[i]];
    if (!seen[i].error.empty()) {
      audit.corrupt.push_back(seen[i].error);
      continue;
    }
    ++audit.sizes[seen[i].size];
    if (seen[i].flat) audit.flat.push_back(name);
    same[seen[i].pixels_sha256].push_back(present[i]);
  }
  const auto usual =
      std::ranges::max_element(audit.sizes, {}, [](const auto& s) { return s.second; });
  for (std::size_t i = 0; i < present.size(); ++i)
    if (seen[i].error.empty() && seen[i].size != usual->first)
      audit.odd_sized.push_back(m.images[present[i]] + " (" + seen[i].size + ")");

  // The same pixels twice, and what crosses a split.
  for (const auto& [sum, rows] : same) {
    if (rows.size() > 1)
      audit.duplicates.push_back(alike(m, rows, split_of, "the same picture", audit));
  }
  std::ranges::sort(audit.duplicates);
  find_near_duplicates(m, present, seen, same, split_of, audit);
  std::unordered_map<std::string, std::set<std::string>> patient_in;
  for (const auto& [row, name] : split_of) patient_in[m.patients[row]].insert(name);
  for (const auto& [patient, in] : patient_in) {
    if (in.size() < 2) continue;
    std::string both;
    for (const auto& name : in) both += (both.empty() ? "" : " and ") + name;
    audit.leaks.push_back("patient " + patient + " is in " + both);
  }
  std::ranges::sort(audit.leaks);
  return audit;
}

}  // namespace chexnet
