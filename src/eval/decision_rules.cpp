#include "chexnet/eval/decision_rules.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

using Column = ScoredColumns::Column;

FindingRules rules_of(const Column& on, bool probabilities,
                      const OperatingTargets& targets) {
  FindingRules rules;
  rules.finding = on.finding;
  rules.positives = on.positives;
  rules.negatives = on.negatives;
  rules.points = {
      {"youden", youden_threshold(on.scores, on.labels)},
      {"sensitivity " + number_text(targets.sensitivity),
       threshold_of_sensitivity(on.scores, on.labels, targets.sensitivity)},
      {"specificity " + number_text(targets.specificity),
       threshold_of_specificity(on.scores, on.labels, targets.specificity)}};
  if (!probabilities) return rules;
  rules.temperature = fit_temperature(on.scores, on.labels);
  rules.isotonic = fit_isotonic(on.scores, on.labels);
  return rules;
}

Json json_of(const FindingRules& rules) {
  Json json = {{"finding", rules.finding},
               {"positives", rules.positives},
               {"negatives", rules.negatives},
               {"thresholds", Json::array()}};
  for (const auto& [rule, threshold] : rules.points)
    json["thresholds"].push_back(
        {{"rule", rule},
         {"threshold", threshold ? Json(*threshold) : Json(nullptr)}});
  if (rules.temperature) json["temperature"] = rules.temperature->temperature;
  if (rules.isotonic)
    json["isotonic"] = {{"from", rules.isotonic->from},
                        {"to", rules.isotonic->to}};
  return json;
}

// Not negative, and no fraction: what at() would turn into some number.
size_t count_of(const nlohmann::json& json, const char* key) {
  const auto& value = json.at(key);
  if (!value.is_number_unsigned())
    throw nlohmann::json::type_error::create(
        302, std::string(key) + " is no count", &value);
  return value.get<size_t>();
}

FindingRules rules_of(const nlohmann::json& json) {
  FindingRules rules;
  rules.finding = json.at("finding");
  rules.positives = count_of(json, "positives");
  rules.negatives = count_of(json, "negatives");
  for (const auto& point : json.at("thresholds")) {
    const auto& threshold = point.at("threshold");
    rules.points.push_back({point.at("rule"), {}});
    if (!threshold.is_null())
      rules.points.back().threshold = threshold.get<double>();
  }
  if (json.contains("temperature"))
    rules.temperature = TemperatureScaling{json["temperature"]};
  if (json.contains("isotonic"))
    rules.isotonic =
        IsotonicMap{json["isotonic"].at("from"), json["isotonic"].at("to")};
  return rules;
}

// "sensitivity" of "sensitivity 0.9".
std::string kind_of(const FindingRules::Point& point) {
  return point.rule.substr(0, point.rule.find(' '));
}

bool is_share(double value) { return value >= 0 && value <= 1; }

// As calibration.hpp and choose_rules() promise; others could not be applied,
// or would call everything positive.
bool is_sound(const FindingRules& rules) {
  static const std::set<std::string> kKnown = {"youden", "sensitivity",
                                               "specificity"};
  std::set<std::string> kinds;
  for (const auto& point : rules.points)
    if (!kKnown.contains(kind_of(point)) ||
        !kinds.insert(kind_of(point)).second ||
        (point.threshold && !is_share(*point.threshold)))
      return false;
  if (rules.temperature &&
      !(rules.temperature->temperature >= kLeastTemperature &&
        rules.temperature->temperature <= kMostTemperature))
    return false;
  if (!rules.isotonic) return true;
  const auto& [from, to] = *rules.isotonic;
  const bool ascends = std::ranges::adjacent_find(
                           from, std::ranges::greater_equal()) == from.end();
  return !from.empty() && from.size() == to.size() && ascends &&
         std::ranges::is_sorted(to) && std::ranges::all_of(from, is_share) &&
         std::ranges::all_of(to, is_share);
}

}  // namespace

std::optional<double> FindingRules::threshold(const std::string& kind) const {
  for (const auto& point : points)
    if (kind_of(point) == kind) return point.threshold;
  return std::nullopt;
}

const FindingRules* DecisionRules::find(const std::string& finding) const {
  std::vector<std::string> names;
  for (const auto& rules : findings) names.push_back(rules.finding);
  const auto found = find_finding(names, finding);
  return found ? &findings[*found] : nullptr;
}

DecisionRules choose_rules(const Predictions& validation,
                           const std::vector<std::string>& findings,
                           const OperatingTargets& targets) {
  const ScoredColumns scored = scored_columns(validation, findings);
  DecisionRules rules;
  rules.images = scored.rows.size();
  for (const Column& column : scored.columns)
    rules.findings.push_back(rules_of(column, scored.probabilities, targets));
  return rules;
}

std::string decision_rules_json(const DecisionRules& rules) {
  Json json = {{"model_sha256", rules.model_sha256},
               {"scored_with", rules.scored_with},
               {"chosen_on",
                {{"images", rules.images},
                 {"sha256", rules.chosen_on},
                 {"manifest_sha256", rules.manifest_sha256}}},
               {"findings", Json::array()}};
  for (const auto& finding : rules.findings)
    json["findings"].push_back(json_of(finding));
  return json_text(json);
}

DecisionRules parse_decision_rules(const std::string& text,
                                   const std::string& origin) {
  const auto refuse = [&](const std::string& what) {
    throw CheckpointError(
        "[decision rules] {}: {}. Hint: the file was changed; take the model "
        "from its run folder",
        origin, what);
  };
  DecisionRules rules;
  try {
    const auto json = nlohmann::json::parse(text);
    rules.model_sha256 = json.at("model_sha256");
    rules.scored_with = json.at("scored_with");
    const auto& chosen_on = json.at("chosen_on");
    rules.images = count_of(chosen_on, "images");
    rules.chosen_on = chosen_on.at("sha256");
    rules.manifest_sha256 = chosen_on.at("manifest_sha256");
    for (const auto& finding : json.at("findings"))
      rules.findings.push_back(rules_of(finding));
  } catch (const nlohmann::json::exception& e) {
    refuse(e.what());
  }
  for (const auto& finding : rules.findings)
    if (!is_sound(finding))
      refuse("the thresholds or the calibration of " + finding.finding +
             " are none");
  return rules;
}

std::optional<double> calibrated(const FindingRules& rules,
                                 Calibration calibration, double probability) {
  if (calibration == Calibration::kTemperature) {
    if (!rules.temperature) return std::nullopt;
    return (*rules.temperature)(probability);
  }
  if (!rules.isotonic) return std::nullopt;
  return (*rules.isotonic)(probability);
}

}  // namespace chexnet
