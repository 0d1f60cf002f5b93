// Each group is a separate column for the bootstrap, with the labels of all
// images outside it blanked: one set of resamples gives the interval of each
// AUROC and of each gap.
#include "chexnet/eval/subgroups.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "auroc.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/ages.hpp"

namespace chexnet {
namespace {

// The number that a value begins with; values without one come last.
double leading_number(const std::string& value) {
  double number = std::numeric_limits<double>::infinity();
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

std::vector<std::string> distinct(std::span<const std::string> values) {
  std::set<std::pair<double, std::string>> seen;
  for (const auto& value : values) {
    if (value.empty()) continue;
    seen.emplace(leading_number(value), value);
    if (seen.size() > kMostSubgroups)
      throw DataError(
          "[subgroups] the column has more than {} values. Hint: a column with "
          "few values is needed; ages go by bands",
          kMostSubgroups);
  }
  std::vector<std::string> names;
  for (const auto& [number, value] : seen) names.push_back(value);
  return names;
}

// The labels of one group's images, or of all others that have a value.
enum class Side { kInside, kOutside };
std::vector<float> labels_of(Side side, const std::string& group,
                             std::span<const float> labels,
                             std::span<const std::string> values) {
  std::vector<float> result(labels.begin(), labels.end());
  for (size_t i = 0; i < result.size(); ++i) {
    const bool inside = values[i] == group;
    const bool kept = side == Side::kInside ? inside : !inside;
    if (values[i].empty() || !kept)
      result[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return result;
}

Subgroup counts_of(const std::string& value, const std::vector<float>& labels,
                   const PatientNumbers& patients) {
  Subgroup group;
  group.value = value;
  std::set<uint32_t> seen;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::isnan(labels[i])) continue;
    seen.insert(patients.of_case[i]);
    ++group.images;
    ++(labels[i] > 0.5f ? group.positives : group.negatives);
  }
  group.patients = seen.size();
  return group;
}

std::optional<double> largest_gap(const std::vector<Subgroup>& groups) {
  std::vector<double> aurocs;
  for (const auto& group : groups)
    if (group.auroc && !group.few_positives()) aurocs.push_back(*group.auroc);
  if (aurocs.size() < 2) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(aurocs);
  return most - least;
}

// What the images of a group, or all others, give.
struct Drawn {
  const Replicates& replicates;
  bool enough;  // for an interval
};

void add_intervals(const Drawn& inside, const Drawn& others,
                   std::optional<double> auroc_of_others, Subgroup& group) {
  if (!group.auroc) return;
  if (inside.enough)
    group.interval = percentile_interval(inside.replicates.auroc);
  if (!auroc_of_others) return;
  group.gap = *group.auroc - *auroc_of_others;
  if (inside.enough && others.enough)
    group.gap_interval = percentile_interval(
        difference(inside.replicates.auroc, others.replicates.auroc));
}

}  // namespace

std::vector<Subgroups> subgroups_of(std::span<const LabeledScores> findings,
                                    std::span<const std::string> values,
                                    const PatientNumbers& patients,
                                    const BootstrapOptions& options) {
  const auto names = distinct(values);
  std::vector<RankedCases> columns;  // of each finding inside, outside, inside…
  std::vector<std::optional<double>> outside;
  std::vector<Subgroups> results(findings.size());
  for (size_t k = 0; k < findings.size(); ++k) {
    const auto& [scores, labels] = findings[k];
    assert(scores.size() == values.size() && labels.size() == values.size());
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].empty() && !std::isnan(labels[i])) ++results[k].unknown;
    for (const auto& name : names) {
      const auto own = labels_of(Side::kInside, name, labels, values);
      const auto others = labels_of(Side::kOutside, name, labels, values);
      results[k].groups.push_back(counts_of(name, own, patients));
      results[k].groups.back().auroc = auroc(scores, own);
      outside.push_back(auroc(scores, others));
      // One that cannot be ranked has no positive, so no replicate.
      columns.push_back(rank_cases(scores, own).value_or(RankedCases{}));
      columns.push_back(rank_cases(scores, others).value_or(RankedCases{}));
    }
  }
  const auto replicates = bootstrap(columns, patients, options);
  for (size_t k = 0; k < findings.size(); ++k) {
    for (size_t g = 0; g < names.size(); ++g) {
      const size_t column = k * names.size() + g;
      const auto drawn = [&](size_t c) {
        return Drawn{replicates[c], has_enough_patients(columns[c], patients)};
      };
      add_intervals(drawn(2 * column), drawn(2 * column + 1), outside[column],
                    results[k].groups[g]);
    }
    results[k].largest_gap = largest_gap(results[k].groups);
  }
  return results;
}

std::vector<std::string> age_bands(std::span<const float> ages,
                                   std::span<const int> from) {
  assert(!from.empty() && from.front() > 0 && std::ranges::is_sorted(from));
  std::vector<std::string> bands;
  for (const float age : ages) bands.push_back(age_band(age, from));
  return bands;
}

}  // namespace chexnet
