#include "audit_published.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <unordered_set>

#include "chexnet/core/text_format.hpp"
#include "chexnet/data/ages.hpp"
#include "chexnet/data/findings.hpp"

namespace chexnet {
namespace {

// Official lists of ChestX-ray14, v2020 table; the 2017 table differs in the
// test list, by which it is known (Pneumonia 1,353 of all instead of 1,431).
struct Published {
  const char* name;
  size_t images, patients, no_finding;
  std::array<size_t, 14> positives;
};
constexpr Published kTrainVal{"train_val",
                              86524,
                              28008,
                              50500,
                              {8280, 1707, 8659, 13782, 4034, 4708, 876, 2637,
                               2852, 1378, 1423, 1251, 2242, 141}};
constexpr Published kTest{"test",
                          25596,
                          2797,
                          9861,
                          {3279, 1069, 4658, 6112, 1748, 1623, 555, 2665, 1815,
                           925, 1093, 435, 1143, 86}};
constexpr size_t kAllImages = 112120, kPneumonia2017 = 1353,
                 kPneumonia2020 = 1431;

bool is_positive(float label) { return label > 0.5f; }  // NaN is not

bool positive(const Manifest& m, uint32_t row, size_t k) {
  return is_positive(m.label_row(row)[k]);
}

// The subgroups that an image counts for; unknown values make none.
std::vector<std::string> groups_of(const Manifest& m, uint32_t row) {
  std::vector<std::string> groups;
  if (!m.sexes[row].empty()) groups.push_back("sex " + m.sexes[row]);
  if (!m.views[row].empty()) groups.push_back("view " + m.views[row]);
  const std::string band = age_band(m.ages[row], kAgeBands);
  if (!band.empty()) groups.push_back("age " + band);
  return groups;
}

const char* release_of(size_t pneumonia) {
  if (pneumonia == kPneumonia2020) return "labels of the v2020 release";
  if (pneumonia == kPneumonia2017) return "labels of the 2017 release";
  return "labels of no published release";
}

}  // namespace

Audit::SplitCounts count_split(const Manifest& m, const std::string& name,
                               const std::vector<uint32_t>& rows) {
  Audit::SplitCounts c;
  c.name = name;
  c.has_no_finding = std::ranges::none_of(m.findings, is_no_finding);
  c.positives.resize(m.finding_count());
  c.uncertain.resize(m.finding_count());
  std::unordered_set<std::string> patients;
  for (const auto row : rows) {
    ++c.images;
    patients.insert(m.patients[row]);
    const float* labels =
        name == "train" ? m.label_row(row) : m.scored_row(row);
    bool any = false, unknown = false;
    for (size_t k = 0; k < m.finding_count(); ++k) {
      any = any || is_positive(labels[k]);
      unknown = unknown || std::isnan(labels[k]);
      c.unlabeled_entries += std::isnan(labels[k]) ? 1 : 0;
      c.positives[k] += is_positive(labels[k]) ? 1 : 0;
      c.uncertain[k] += m.is_uncertain(row, k) ? 1 : 0;
    }
    c.no_finding += !any && !unknown ? 1 : 0;
    for (const auto& group : groups_of(m, row)) {
      auto& g = c.subgroups[group];
      g.positives.resize(m.finding_count());
      ++g.images;
      for (size_t k = 0; k < m.finding_count(); ++k)
        g.positives[k] += is_positive(labels[k]) ? 1 : 0;
    }
  }
  c.patients = patients.size();
  return c;
}

namespace {

void compare(const Manifest& m, const std::vector<uint32_t>& rows,
             const Published& known, Audit& audit) {
  const auto c = count_split(m, known.name, rows);
  const auto differs = [&](const std::string& what, size_t got, size_t wanted) {
    if (got == wanted) return;
    audit.known_differs = true;
    audit.known.push_back(std::string(known.name) + ": " + what + " " +
                          std::to_string(got) + ", published " +
                          std::to_string(wanted));
  };
  differs("images", c.images, known.images);
  differs("patients", c.patients, known.patients);
  const bool v2017 =
      known.name == std::string("test") && c.positives[6] < known.positives[6];
  if (v2017) return;  // its 181 other labels are all in this list
  differs("no finding", c.no_finding, known.no_finding);
  for (size_t k = 0; k < 14; ++k)
    differs(m.findings[k], c.positives[k], known.positives[k]);
}

}  // namespace

namespace {

void compare_with_nih(const Manifest& m, const Splits& splits, Audit& audit) {
  if (m.size() != kAllImages || m.findings != nih_findings()) {
    audit.known.push_back(
        "the table has " + std::to_string(m.size()) +
        " images, not the 112,120 of ChestX-ray14: nothing to compare with");
    return;
  }
  size_t pneumonia = 0;
  for (uint32_t row = 0; row < m.size(); ++row)
    pneumonia += positive(m, row, 6) ? 1 : 0;
  audit.known.emplace_back(release_of(pneumonia));
  audit.known_differs =
      pneumonia != kPneumonia2020 && pneumonia != kPneumonia2017;
  if (splits.test.rows.size() != kTest.images) {
    audit.known.emplace_back("the test list is not the official one");
    return;
  }
  auto train_val = splits.train.rows;
  train_val.insert(train_val.end(), splits.val.rows.begin(),
                   splits.val.rows.end());
  compare(m, train_val, kTrainVal, audit);
  compare(m, splits.test.rows, kTest, audit);
  if (!audit.known_differs) audit.known.emplace_back("all counts as published");
}

// Of the other data sets only sizes: the config decides their labels. Counted
// in the files, or said on the pages, that docs/labels.md names.
struct PublishedSize {
  ManifestFormat format;
  const char* part;
  int64_t images;
  size_t patients;  // 0: not known
};
constexpr auto kSizes = std::to_array<PublishedSize>({
    {ManifestFormat::kChexpert, "train.csv", 223414, 64540},
    {ManifestFormat::kChexpert, "valid.csv", 234, 200},
    {ManifestFormat::kChexpert, "both", 223648, 64740},
    {ManifestFormat::kMimicCxr, "all splits", 377110, 65379},
    {ManifestFormat::kPadchest, "the table of 2019", 160861, 0},
    {ManifestFormat::kVindr, "train", 15000, 0},
    {ManifestFormat::kVindr, "test", 3000, 0},
    {ManifestFormat::kVindr, "train and test", 18000, 0},
    {ManifestFormat::kBrax, "the master spreadsheet", 40967, 19351},
});

void compare_sizes(const Manifest& m, ManifestFormat format, Audit& audit) {
  const auto images = static_cast<int64_t>(m.size() + m.left_out.size());
  std::string published;
  for (const auto& part : kSizes) {
    if (part.format != format) continue;
    published += (published.empty() ? "" : ", ") + std::string(part.part) +
                 " " + counted(part.images, "image");
    if (part.images != images) continue;
    audit.known.push_back(counted(images, "image") + ", as published of " +
                          part.part);
    if (part.patients == 0 || !m.left_out.empty()) return;
    const std::set<std::string> patients(m.patients.begin(), m.patients.end());
    if (patients.size() == part.patients) return;
    audit.known_differs = true;
    audit.known.push_back(std::to_string(patients.size()) +
                          " patients, published " +
                          std::to_string(part.patients));
    return;
  }
  if (!published.empty())
    audit.known.push_back("the table has " + counted(images, "image") +
                          "; published: " + published);
}

}  // namespace

void compare_with_published(const ManifestConfig& tables, const Manifest& m,
                            const Splits& splits, Audit& audit) {
  const ManifestFormat format = tables.format.front();
  const auto is_other = [&](ManifestFormat f) { return f != format; };
  if (std::ranges::any_of(tables.format, is_other)) return;
  if (format != ManifestFormat::kNih)
    compare_sizes(m, format, audit);
  else if (m.left_out.empty() && tables.path.size() <= 1)
    compare_with_nih(m, splits, audit);
}

std::vector<std::string> compared_with_published(const ManifestConfig& tables,
                                                 const Manifest& manifest,
                                                 const Splits& splits) {
  Audit audit;
  compare_with_published(tables, manifest, splits, audit);
  return audit.known;
}

}  // namespace chexnet
