// AUROC is "not defined" where a finding has only positives or only negatives.
// The JSON says null there, and not 0 or NaN: a mean over findings that took it
// for a number would be wrong.
#include "chexnet/report/scores_output.hpp"

#include <limits>
#include <vector>

#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/data/findings.hpp"
#include "comparison_output.hpp"
#include "figure_output.hpp"
#include "localization_output.hpp"
#include "reliability_output.hpp"
#include "significant.hpp"
#include "subgroup_output.hpp"

namespace chexnet {
namespace {

// "the test split", but "valid.csv"
std::string place_of(const std::string& split) {
  const bool is_split = split == "train" || split == "val" || split == "test";
  return is_split ? "the " + split + " split" : split;
}

using Line = std::vector<std::string>;
using chexnet::json_of;  // beside those below

std::vector<Line> finding_lines(const SplitScores& result) {
  const Figures& figures = result.figures;
  const char* unit = figures.patients > 0 ? "95 % by patient" : "95 % by image";
  std::vector<Line> lines = {
      {"  finding", "AUROC", unit, "average precision", "Brier", "positives"}};
  for (const auto& f : figures.findings)
    lines.push_back({"  " + f.finding,
                     f.auroc.value ? figure_text(f.auroc.value) : "not defined",
                     interval_text(f.auroc.interval, " - "),
                     figure_text(f.average_precision.value),
                     figure_text(f.brier), std::to_string(f.positives)});
  return lines;
}

std::string estimate_text(const Estimate& estimate) {
  if (!estimate.value) return "not defined";
  if (!estimate.interval) return figure_text(estimate.value);
  return figure_text(estimate.value) + " (" +
         interval_text(estimate.interval, " - ") + ")";
}

Rows summary_rows(const SplitScores& result) {
  const Estimate& any = result.figures.any_finding.auroc;
  std::string any_text = estimate_text(any);
  if (!any.value && !result.scores.probabilities)
    any_text += ": scores outside 0..1 are no probabilities";
  Rows rows = {{"mean AUROC", mean_auroc_text(result.figures.mean_auroc)},
               {"any finding by mean logit", any_text}};
  std::vector<std::string> few;
  for (const auto& f : result.figures.findings)
    if (f.few_positives()) few.push_back(f.finding);
  if (!few.empty())
    rows.emplace_back("rough: fewer than ten positives",
                      printable(listed(few)));
  std::vector<std::string> without;
  for (const auto& f : result.figures.findings)
    if (f.auroc.value && f.few_patients) without.push_back(f.finding);
  if (any.value && result.figures.any_finding.few_patients)
    without.emplace_back("any finding");
  if (!without.empty())
    rows.emplace_back("no interval",
                      printable(listed(without)) +
                          ": fewer than five patients have it, or have it not");
  return rows;
}

// "0.81 (0.70 - 0.88)"
std::string proportion_text(const Proportion& proportion) {
  const auto value = proportion.value();
  if (!value) return "-";
  const auto interval = proportion.interval();
  return fixed(*value, 2) + " (" + fixed(interval->low, 2) + " - " +
         fixed(interval->high, 2) + ")";
}

std::string points_text(const SplitScores& result) {
  if (result.points.empty()) return "";
  std::vector<Line> lines = {{"  finding", "rule", "threshold", "sensitivity",
                              "specificity", "PPV", "NPV", "F1"}};
  if (result.prevalence)
    for (const char* figure : {"PPV at ", "NPV at "})
      lines[0].push_back(figure + fixed(100 * *result.prevalence, 1) + " %");
  bool few = false;
  for (const auto& p : result.points) {
    const Confusion& c = p.confusion;
    few = few || p.few_positives();
    lines.push_back({"  " + p.finding + (p.few_positives() ? " *" : ""), p.rule,
                     p.threshold ? significant(*p.threshold, 3) : "-",
                     proportion_text(c.sensitivity()),
                     proportion_text(c.specificity()), proportion_text(c.ppv()),
                     proportion_text(c.npv()), figure_text(c.f1(), 2)});
    if (!result.prevalence) continue;
    lines.back().push_back(figure_text(c.ppv_at(*result.prevalence), 2));
    lines.back().push_back(figure_text(c.npv_at(*result.prevalence), 2));
  }
  std::string text =
      "\n\nOperating points" +
      (result.rules_from.empty()
           ? ""
           : ", thresholds chosen on validation by " + result.rules_from) +
      ", 95 % by image (Wilson)\n" + columns(lines);
  text += "  thresholds are rounded: --json and --figures have all digits\n";
  if (few) text += kRoughHereOrThere;
  text.pop_back();  // whoever prints ends the line
  return text;
}

Json json_of(const FindingFigures& f) {
  Json json;
  json["positives"] = f.positives;
  json["negatives"] = f.negatives;
  json["few_positives"] = f.few_positives();
  json["few_patients"] = f.few_patients;
  json["auroc"] = json_of(f.auroc.value);
  json["auroc_interval"] = json_of(f.auroc.interval);
  json["auroc_interval_delong"] = json_of(f.delong);
  json["average_precision"] = json_of(f.average_precision.value);
  json["average_precision_interval"] = json_of(f.average_precision.interval);
  json["resamples_left_out"] =
      f.auroc.interval ? Json(f.auroc.interval->left_out) : Json(nullptr);
  json["brier"] = json_of(f.brier);
  json["calibration_error"] = {
      {"equal_widths", json_of(f.error_in_equal_widths)},
      {"equal_masses", json_of(f.error_in_equal_masses)}};
  return json;
}

Json json_of(const Proportion& proportion) {
  return {{"value", json_of(proportion.value())},
          {"interval", json_of(proportion.interval())}};
}

Json json_of(const OperatingPoint& p, const std::optional<double>& prevalence) {
  const Confusion& c = p.confusion;
  Json json;
  json["finding"] = p.finding;
  json["rule"] = p.rule;
  json["threshold"] = json_of(p.threshold);
  json["few_positives"] = p.few_positives();
  json["chosen_on"] = {{"images", p.chosen_on_images},
                       {"positives", p.chosen_on_positives}};
  json["confusion"] = {{"true_positives", c.true_positives},
                       {"false_positives", c.false_positives},
                       {"true_negatives", c.true_negatives},
                       {"false_negatives", c.false_negatives}};
  json["sensitivity"] = json_of(c.sensitivity());
  json["specificity"] = json_of(c.specificity());
  json["ppv"] = json_of(c.ppv());
  json["npv"] = json_of(c.npv());
  json["f1"] = json_of(c.f1());
  if (prevalence)
    json["at_prevalence"] = {{"prevalence", *prevalence},
                             {"ppv", json_of(c.ppv_at(*prevalence))},
                             {"npv", json_of(c.npv_at(*prevalence))}};
  return json;
}

std::string scores_headline(const SplitScores& result) {
  std::string images = images_text(result.scores);
  if (result.missing > 0)
    images += result.scores.by == ScoredBy::kImage
                  ? formatted(" ({} more are missing)", result.missing)
                  : " (without " +
                        counted(static_cast<int64_t>(result.missing),
                                "missing image") +
                        ")";
  if (result.figures.patients > 0 && result.scores.by != ScoredBy::kPatient)
    images += "; " + counted(result.figures.patients, "patient");
  return "AUROC on " + place_of(result.split) + ", " + images +
         " (research use, not a medical device)\n";
}

}  // namespace

std::string mean_auroc_text(const MeanFigure& mean) {
  return estimate_text(mean) +
         over_findings(static_cast<int64_t>(mean.findings), mean.rough);
}

void add_mean_auroc(const MeanFigure& mean, MetricFields& fields) {
  const auto none = std::numeric_limits<double>::quiet_NaN();
  const auto& found = mean.interval;
  fields.emplace_back("mean_auroc", mean.value.value_or(none));
  fields.emplace_back("mean_auroc_low", found ? found->interval.low : none);
  fields.emplace_back("mean_auroc_high", found ? found->interval.high : none);
  fields.emplace_back("findings_in_mean", static_cast<int64_t>(mean.findings));
  fields.emplace_back("mean_is_rough", std::string(mean.rough ? "yes" : "no"));
}

std::string scores_summary(const SplitScores& result) {
  constexpr size_t kMostFindings = 14;  // as ChestX-ray14 has
  std::vector<Line> lines = finding_lines(result);
  std::string more;
  if (lines.size() > kMostFindings + 1) {
    const auto hidden = lines.size() - kMostFindings - 1;
    more = "  and " + counted(static_cast<int64_t>(hidden), "finding") +
           " more: see the report\n";
    lines.resize(kMostFindings + 1);
  }
  return scores_headline(result) + columns(lines) + more +
         aligned(summary_rows(result));
}

void add_figures(const Predictions& predictions,
                 const std::vector<std::string>& findings,
                 const DecisionRules* rules, const BootstrapOptions& draws,
                 SplitScores& result) {
  result.figures = figures_of(predictions, findings, draws);
  result.points = operating_points(predictions, findings, rules, {});
  result.reliability = reliability_of(predictions, findings, rules);
  if (rules != nullptr) result.rules_from = "the model";
}

std::string scores_text(const SplitScores& result) {
  return scores_headline(result) + columns(finding_lines(result)) +
         aligned(summary_rows(result)) + points_text(result) +
         reliability_text(result.reliability) +
         subgroups_text(result.subgroups) +
         (result.comparison
              ? comparison_text(*result.comparison, result.against)
              : "") +
         (result.localization ? localization_text(*result.localization) : "");
}

Json scores_json(const SplitScores& result) {
  const Scores& s = result.scores;
  const Figures& figures = result.figures;
  Json json;
  json["by"] = choice_name(s.by);
  json["images"] = s.images;
  json["damaged"] = s.damaged;
  json["missing"] = result.missing;
  json["not_scored"] = s.not_scored;
  for (size_t k = 0; k < s.findings.size(); ++k)
    json["auroc"][s.findings[k]] = json_of(s.auroc[k]);
  json["mean_auroc"] = json_of(s.mean_auroc);
  json["mean_auroc_interval"] = json_of(figures.mean_auroc.interval);
  json["findings_in_mean"] = figures.mean_auroc.findings;
  json["mean_is_rough"] = figures.mean_auroc.rough;
  json["any_finding_auroc_mean_logit"] =
      json_of(s.any_finding_auroc_mean_logit);
  json["any_finding_interval"] = json_of(figures.any_finding.auroc.interval);
  json["loss"] = json_of(s.loss);
  for (const auto& f : figures.findings)
    json["findings"][f.finding] = json_of(f);
  json["thresholds_from"] =
      result.rules_from.empty() ? Json(nullptr) : Json(result.rules_from);
  for (const auto& p : result.points)
    json["operating_points"].push_back(json_of(p, result.prevalence));
  json["reliability"] = reliability_json(result.reliability);
  if (!result.subgroups.empty())
    json["subgroups"] = subgroups_json(result.subgroups);
  if (result.comparison)
    json["comparison"] = comparison_json(*result.comparison, result.against);
  if (result.localization)
    json["localization"] = localization_json(*result.localization);
  const bool by_patient = figures.patients > 0;
  json["intervals"] = {
      {"level", 0.95},
      {"by", by_patient ? "patient" : "image"},
      {"patients", by_patient ? Json(figures.patients) : Json(nullptr)},
      {"resamples", figures.resamples},
      {"seed", figures.seed}};
  if (!result.predictions_sha256.empty())
    json["predictions_sha256"] = result.predictions_sha256;
  json["split"] = {
      {"name", result.split},
      {"sha256", result.sha256.empty() ? Json(nullptr) : Json(result.sha256)}};
  return json;
}

}  // namespace chexnet
