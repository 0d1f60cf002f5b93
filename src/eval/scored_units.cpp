#include "chexnet/eval/scored_units.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/eval/ensemble.hpp"
#include "chexnet/eval/logit.hpp"

namespace chexnet {
namespace {

struct Unit {
  std::string name;
  std::vector<size_t> images, scored;  // all, and those with a score
};

std::string unit_name(size_t row, const Manifest& manifest, ScoredBy by) {
  const std::string& patient = manifest.patients[row];
  if (by == ScoredBy::kPatient) return patient;
  return patient + "\n" + manifest.studies[row];
}

// In the order in which they first come. Each has the least name of its images
// in the manifest, and its images are in the order of theirs: so neither the
// order of a table nor which of the images it has makes a difference.
std::vector<Unit> units_of(const Predictions& images, const Manifest& manifest,
                           ScoredBy by) {
  std::vector<Unit> units;
  std::unordered_map<std::string, size_t> unit_of;
  for (size_t i = 0; i < images.images.size(); ++i) {
    const std::string& image = images.images[i];
    const auto row = manifest.rows.find(image);
    const auto [unit, is_new] = unit_of.try_emplace(
        row == manifest.rows.end() ? image + "\n\n"  // like no other
                                   : unit_name(row->second, manifest, by),
        units.size());
    if (is_new) units.push_back({image, {}, {}});
    units[unit->second].images.push_back(i);
  }
  for (size_t row = 0; row < manifest.size(); ++row) {
    const auto unit = unit_of.find(unit_name(row, manifest, by));
    if (unit == unit_of.end()) continue;
    std::string& name = units[unit->second].name;
    name = std::min(name, manifest.images[row]);
  }
  for (Unit& unit : units) {
    std::ranges::sort(unit.images, {},
                      [&](size_t i) { return images.images[i]; });
    std::ranges::copy_if(unit.images, std::back_inserter(unit.scored),
                         [&](size_t i) { return images.scored(i); });
  }
  return units;
}

float joined_label(float a, float b) {
  if (a == 1 || b == 1) return 1;
  return std::isnan(a) || std::isnan(b) ? std::nanf("") : std::max(a, b);
}

double mean_of(const std::vector<double>& scores) {
  // Others, of somebody's table, have no logits.
  if (std::ranges::any_of(scores, [](double p) { return p < 0 || p > 1; }))
    return std::accumulate(scores.begin(), scores.end(), 0.0) /
           static_cast<double>(scores.size());
  std::vector<double> logits;
  for (const double p : scores) logits.push_back(nearest_logit(p));
  return probability_of(mean_of_members(logits).logit);
}

// Adds the score of finding `k`, and its spread if the images have some.
void add_score(const Predictions& images, const Unit& unit, size_t k,
               CombineImages combine, Predictions& units) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  double score = kNaN, spread = kNaN;
  std::vector<double> scores;
  for (const size_t i : unit.scored) {
    const size_t at = i * images.findings.size() + k;
    scores.push_back(images.probabilities[at]);
    if (scores.size() > 1 && !(scores.back() > score)) continue;
    score = scores.back();
    spread = images.spreads.empty() ? kNaN : images.spreads[at];
  }
  if (scores.size() > 1 && combine == CombineImages::kMean) {
    score = mean_of(scores);
    spread = kNaN;
  }
  units.probabilities.push_back(score);
  if (!images.spreads.empty()) units.spreads.push_back(spread);
}

}  // namespace

void check_scored_by(const Manifest& manifest, const EvalConfig& config) {
  if (config.by == ScoredBy::kImage) return;
  if (!manifest.knows_patients)
    throw ConfigError(
        "[config] eval.by={}: {} does not say whose its images are. Hint: "
        "eval.by=image, or --set data.manifest.columns.patient=NAME of a table "
        "of format csv",
        choice_name(config.by), manifest.path);
  if (config.by == ScoredBy::kPatient) return;
  const auto unknown = std::ranges::find(manifest.studies, "");
  if (unknown != manifest.studies.end())
    throw ConfigError(
        "[config] eval.by=study: {}: the study of this image is not known. "
        "Hint: eval.by=patient, or --set data.manifest.columns.study=NAME of a "
        "table of format csv",
        manifest.place(
            static_cast<size_t>(unknown - manifest.studies.begin())));
}

Predictions scored_units(Predictions images, const Manifest& manifest,
                         const EvalConfig& config) {
  if (images.by != ScoredBy::kImage && config.by != ScoredBy::kImage &&
      images.by != config.by)
    throw ConfigError(
        "[config] eval.by={}: a table has a row for each {} already. Hint: "
        "eval.by={}",
        choice_name(config.by), choice_name(images.by), choice_name(images.by));
  if (images.by != ScoredBy::kImage || config.by == ScoredBy::kImage)
    return images;
  Predictions units;
  units.by = config.by;
  units.findings = images.findings;
  for (const Unit& unit : units_of(images, manifest, config.by)) {
    const size_t first = unit.images.front();
    units.images.push_back(unit.name);
    if (!images.patients.empty())
      units.patients.push_back(images.patients[first]);
    if (!images.reasons.empty())
      units.reasons.push_back(unit.scored.empty() ? images.reasons[first] : "");
    for (size_t k = 0; k < images.findings.size(); ++k) {
      float label = 0;
      for (const size_t i : unit.images)
        label =
            joined_label(label, images.labels[i * images.findings.size() + k]);
      units.labels.push_back(label);
      add_score(images, unit, k, config.combine, units);
    }
  }
  return units;
}

std::string scored_with(const EvalConfig& config) {
  std::string text = std::string("eval.crops=") + choice_name(config.crops) +
                     " eval.by=" + choice_name(config.by);
  if (config.by != ScoredBy::kImage)
    text += std::string(" eval.combine=") + choice_name(config.combine);
  return text;
}

}  // namespace chexnet
