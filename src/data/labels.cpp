// The meaning of a table's cell: 1, 0, blank or uncertain, by the policy of its
// finding. Training and scoring may differ in it, and so have separate arrays.
#include "labels.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"

namespace chexnet {
namespace {

float policy_value(LabelPolicy policy) {
  if (policy == LabelPolicy::kZero) return 0;
  if (policy == LabelPolicy::kOne) return 1;
  return kUnlabeled;
}

float policy_value(TrainingPolicy policy) {
  if (policy == TrainingPolicy::kZero) return 0;
  if (policy == TrainingPolicy::kOne) return 1;
  return policy == TrainingPolicy::kSmooth ? kSmoothLabel : kUnlabeled;
}

// The values of a blank and an uncertain cell of one finding.
struct Policy {
  float blank = kUnlabeled, uncertain = kUnlabeled;
  float operator()(float cell) const {
    if (std::isnan(cell)) return blank;
    return cell == kUncertain ? uncertain : cell;
  }
  bool operator==(const Policy& other) const {
    const auto same = [](float a, float b) {
      return a == b || (std::isnan(a) && std::isnan(b));
    };
    return same(blank, other.blank) && same(uncertain, other.uncertain);
  }
};

std::vector<Policy> training_policies(const Manifest& m,
                                      const DataConfig& config,
                                      LabelPolicy blank,
                                      const std::vector<std::string>& known) {
  std::vector<Policy> policies(
      m.finding_count(),
      {policy_value(blank), policy_value(config.uncertain.policy)});
  std::vector<std::string> named;
  for (const auto& [name, policy] : config.uncertain.of_findings) {
    if (!find_finding(known, name))
      throw ConfigError(
          "[config] data.uncertain: no finding '{}'. Hint: nearest are {}",
          name, nearest_names(name, known));
    if (const auto found = find_finding(m.findings, name))
      policies[*found].uncertain = policy_value(policy);
    named.push_back(name);
  }
  refuse_doubled(named, "data.uncertain");
  return policies;
}

std::vector<float> with_policies(std::vector<float> entries,
                                 const std::vector<Policy>& policies) {
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i] = policies[i % policies.size()](entries[i]);
  return entries;
}

// [N, from.size()]: columns `from` of entries [N, width], `none` for kNoColumn.
constexpr size_t kNoColumn = std::string::npos;
template <class Entry>
std::vector<Entry> columns_of(const std::vector<Entry>& entries, size_t width,
                              const std::vector<size_t>& from, Entry none) {
  std::vector<Entry> taken;
  taken.reserve(entries.size() / width * from.size());
  for (size_t at = 0; at < entries.size(); at += width)
    for (const size_t k : from)
      taken.push_back(k == kNoColumn ? none : entries[at + k]);
  return taken;
}

}  // namespace

void apply_policies(Manifest& m, ManifestFormat format,
                    const DataConfig& config, const EvalConfig& eval,
                    const std::vector<std::string>& known) {
  // Irvin et al. (2019) count findings that a report does not mention as
  // negative; their program labeled the reports of three data sets.
  const bool unmentioned_is_absent = format == ManifestFormat::kChexpert ||
                                     format == ManifestFormat::kMimicCxr ||
                                     format == ManifestFormat::kBrax;
  const LabelPolicy usual =
      unmentioned_is_absent ? LabelPolicy::kZero : LabelPolicy::kIgnore;
  const LabelPolicy blank = config.blank.value_or(usual);
  const auto training = training_policies(m, config, blank, known);
  const Policy scoring = {policy_value(eval.blank.value_or(blank)),
                          policy_value(eval.uncertain)};
  const auto open = [](float cell) {
    return std::isnan(cell) || cell == kUncertain;
  };
  if (std::ranges::none_of(m.labels, open)) return;
  if (std::ranges::find(m.labels, kUncertain) != m.labels.end())
    for (const float cell : m.labels) m.uncertain.push_back(cell == kUncertain);
  const bool differ = std::ranges::any_of(
      training, [&](const auto& p) { return !(p == scoring); });
  if (differ)
    m.scored = with_policies(m.labels,
                             std::vector<Policy>(m.finding_count(), scoring));
  m.labels = with_policies(std::move(m.labels), training);
}

std::vector<std::string> match_findings(
    Manifest& m, const std::vector<std::string>& findings) {
  std::vector<size_t> from;
  for (const auto& name : findings)
    from.push_back(find_finding(m.findings, name).value_or(kNoColumn));
  std::vector<std::string> left_out;
  for (size_t k = 0; k < m.finding_count(); ++k)
    if (std::ranges::find(from, k) == from.end())
      left_out.push_back(m.findings[k]);
  m.labels = columns_of(m.labels, m.finding_count(), from, kUnlabeled);
  m.scored = columns_of(m.scored, m.finding_count(), from, kUnlabeled);
  m.uncertain = columns_of(m.uncertain, m.finding_count(), from, false);
  m.findings = findings;
  return left_out;
}

}  // namespace chexnet
