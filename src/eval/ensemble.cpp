#include "chexnet/eval/ensemble.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "chexnet/core/error.hpp"
#include "chexnet/eval/logit.hpp"

namespace chexnet {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Where an image stands: its member, and its row there.
struct Place {
  const Predictions* table;
  size_t row;
};

bool same_label(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

void check_labels(const std::vector<Place>& places, size_t finding) {
  const Place& first = places.front();
  const size_t findings = first.table->findings.size();
  const float label = first.table->labels[first.row * findings + finding];
  for (const auto& [table, row] : places)
    if (!same_label(label, table->labels[row * findings + finding]))
      throw DataError(
          "[ensemble] {} of {} is labeled differently by two runs. Hint: train "
          "the members with one table of labels",
          first.table->findings[finding], first.table->images[first.row]);
}

std::vector<double> logits_of(const std::vector<Place>& places,
                              size_t finding) {
  std::vector<double> logits;
  for (const auto& [table, row] : places)
    if (table->scored(row))
      logits.push_back(nearest_logit(
          table->probabilities[row * table->findings.size() + finding]));
  return logits;
}

void add_image(const std::vector<Place>& places, Predictions& all) {
  const auto& [table, row] = places.front();
  all.images.push_back(table->images[row]);
  if (!table->patients.empty()) all.patients.push_back(table->patients[row]);
  const bool scored = std::ranges::any_of(
      places, [](const Place& p) { return p.table->scored(p.row); });
  all.reasons.push_back(scored ? "" : table->reasons[row]);
  const size_t findings = table->findings.size();
  for (size_t k = 0; k < findings; ++k) {
    check_labels(places, k);
    all.labels.push_back(table->labels[row * findings + k]);
    const auto logits = logits_of(places, k);
    if (logits.empty()) {
      all.probabilities.push_back(kNaN);
      all.spreads.push_back(kNaN);
      continue;
    }
    const MemberMean mean = mean_of_members(logits);
    all.probabilities.push_back(probability_of(mean.logit));
    all.spreads.push_back(logits.size() > 1 ? mean.spread : kNaN);
  }
}

}  // namespace

MemberMean mean_of_members(std::span<const double> logits) {
  assert(!logits.empty());
  const auto count = static_cast<double>(logits.size());
  double logit = 0, probability = 0, squares = 0;
  for (const double value : logits) {
    logit += value;
    probability += probability_of(value);
  }
  if (logits.size() == 1) return {logit, 0};
  probability /= count;
  for (const double value : logits) {
    const double off = probability_of(value) - probability;
    squares += off * off;
  }
  return {logit / count, std::sqrt(squares / (count - 1))};
}

Predictions mean_of_tables(const std::vector<Predictions>& members) {
  std::vector<std::vector<Place>> images;
  std::map<std::string, size_t> place_of;
  for (const auto& table : members) {
    assert(table.findings == members.front().findings);
    for (size_t row = 0; row < table.images.size(); ++row) {
      const auto [found, is_new] =
          place_of.try_emplace(table.images[row], images.size());
      if (is_new) images.emplace_back();
      images[found->second].push_back({&table, row});
    }
  }
  Predictions all;
  if (members.empty()) return all;
  all.by = members.front().by;
  all.findings = members.front().findings;
  for (const auto& places : images) add_image(places, all);
  if (std::ranges::all_of(all.spreads,
                          [](double spread) { return std::isnan(spread); }))
    all.spreads.clear();
  return all;
}

}  // namespace chexnet
