// Drawings of each finding: ROC, precision-recall, reliability; and the table
// of its operating points.
#include <algorithm>
#include <cmath>

#include "chexnet/eval/calibration_error.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/eval/scored_columns.hpp"
#include "chexnet/report/run_results.hpp"
#include "page.hpp"
#include "report_sections.hpp"
#include "unit_plot.hpp"

namespace chexnet {
namespace {

// Of a drawing's side: the smallest visible distance.
constexpr double kCell = 1.0 / 150;
// A reliability diagram of fewer images says nothing.
constexpr size_t kFewestInBin = 5;

// The operating points of `finding`, as (1 - specificity, sensitivity, PPV).
struct Mark {
  double x, sensitivity;
  std::optional<double> ppv;
};
std::vector<Mark> marks_of(const Json& evaluation, const std::string& finding) {
  std::vector<Mark> marks;
  for (const auto& point : member(evaluation, "operating_points")) {
    if (text(point, "finding") != finding) continue;
    const auto sensitivity = number(member(point, "sensitivity"), "value");
    const auto specificity = number(member(point, "specificity"), "value");
    if (sensitivity && specificity)
      marks.push_back({1 - *specificity, *sensitivity,
                       number(member(point, "ppv"), "value")});
  }
  return marks;
}

// Rare findings have small scores alone, so the axes end where the last bin's
// bar does, at a whole tenth.
std::string reliability_svg(const ScoredColumns::Column& column) {
  std::vector<ReliabilityBin> bins =
      reliability_bins(column.scores, column.labels, Binning::kEqualMass);
  std::erase_if(bins, [](const auto& bin) { return bin.cases < kFewestInBin; });
  double highest = 0;
  CurvePoints line;
  std::vector<Interval> ranges;
  for (const auto& bin : bins) {
    line.emplace_back(bin.mean_probability, bin.rate());
    ranges.push_back(*wilson_interval(bin.positives, bin.cases));
    highest = std::max({highest, bin.mean_probability, ranges.back().high});
  }
  UnitPlot plot(column.finding + ": reliability", "predicted", "observed",
                std::clamp(std::ceil(10 * highest) / 10, 0.1, 1.0));
  plot.add_diagonal();
  for (size_t i = 0; i < line.size(); ++i)
    plot.add_bar(line[i].first, ranges[i]);
  plot.add_line(line);
  for (const auto& [x, y] : line) plot.add_dot(x, y, 2.5);
  return plot.svg();
}

std::string panels_of(const ScoredColumns::Column& column, bool probabilities,
                      const Json& evaluation) {
  const auto ranked = rank_cases(column.scores, column.labels);
  if (!ranked || ranked->positives == 0 || ranked->negatives == 0) return "";
  const auto marks = marks_of(evaluation, column.finding);
  UnitPlot roc(column.finding + ": ROC curve", "1 - specificity",
               "sensitivity");
  roc.add_diagonal();
  roc.add_line(thinned(roc_curve(*ranked), kCell));
  UnitPlot precision(column.finding + ": precision-recall curve",
                     "sensitivity (recall)", "PPV (precision)");
  precision.add_level(static_cast<double>(ranked->positives) /
                      static_cast<double>(ranked->cases.size()));
  precision.add_line(thinned(precision_recall_curve(*ranked), kCell));
  for (const auto& mark : marks) {
    roc.add_dot(mark.x, mark.sensitivity);
    if (mark.ppv) precision.add_dot(mark.sensitivity, *mark.ppv);
  }
  std::string panels = html_figure(roc.svg(), "ROC") +
                       html_figure(precision.svg(), "Precision and recall");
  if (probabilities)
    panels += html_figure(reliability_svg(column), "Reliability");
  return html_group(shown(column.finding), panels);
}

}  // namespace

std::string operating_section(const Json& evaluation) {
  HtmlTable table(
      "Chosen on validation, applied to these images; 95 % by image (Wilson)",
      {"finding", "rule", "#threshold", "#TP / FP / TN / FN", "#sensitivity",
       "#specificity", "#PPV", "#NPV", "#F1"});
  for (const auto& point : member(evaluation, "operating_points")) {
    const auto threshold = number(point, "threshold");
    const std::string finding =
        shown(text(point, "finding")) +
        (is_true(point, "few_positives") ? " (rough)" : "");
    if (!threshold) {
      table.add({finding, rule_text(point), "none found", "-", "-", "-", "-",
                 "-", "-"});
      continue;
    }
    const Json& counts = member(point, "confusion");
    table.add({finding, rule_text(point), significant(*threshold, 3),
               count_text(counts, "true_positives") + " / " +
                   count_text(counts, "false_positives") + " / " +
                   count_text(counts, "true_negatives") + " / " +
                   count_text(counts, "false_negatives"),
               proportion_text(point, "sensitivity"),
               proportion_text(point, "specificity"),
               proportion_text(point, "ppv"), proportion_text(point, "npv"),
               digits(number(point, "f1"), 2)});
  }
  if (table.empty()) return "";
  return html_paragraph(
             "An image is called positive when its score is at least the "
             "threshold; results.json and the model file have all its digits. "
             "PPV and NPV hold for the prevalence of these images alone: where "
             "a finding is rarer, the PPV is lower. Rough: fewer than ten "
             "positives, here or where the threshold was chosen. None found: "
             "no threshold keeps the rule and finds a positive.") +
         table.html();
}

namespace {

// Of the split's table of predictions; or why there are none.
struct CurvesOf {
  ScoredColumns scored;
  std::string problem;
};

CurvesOf curves_of(const std::filesystem::path& folder, const Json& evaluation,
                   const std::string& split) {
  const auto table = folder / ("predictions_" + split + ".csv");
  const std::string name = table.filename().string();
  std::error_code error;
  if (!std::filesystem::exists(table, error))
    return {{}, name + " is not in the run folder, so no curves are drawn."};
  if (!is_scored_table(table, evaluation))
    return {{},
            name +
                " was changed after the run: it is not what the figures above "
                "are of, so no curves are drawn."};
  return {scored_columns(read_predictions(table.string(), nullptr), {}), ""};
}

}  // namespace

std::string why_no_curves(const std::filesystem::path& folder,
                          const Json& evaluation, const std::string& split) {
  return evaluation.is_null() ? ""
                              : curves_of(folder, evaluation, split).problem;
}

std::string curves_section(const std::filesystem::path& folder,
                           const Json& evaluation, const std::string& split) {
  if (evaluation.is_null()) return "";
  const auto [scored, problem] = curves_of(folder, evaluation, split);
  if (!problem.empty()) return html_paragraph(problem);
  std::string html;
  for (const auto& column : scored.columns)
    if (member(evaluation, "findings").contains(column.finding))
      html += panels_of(column, scored.probabilities, evaluation);
  if (html.empty()) return "";
  return html_paragraph(
             "Dots: operating points. Dashed: chance (ROC), the prevalence "
             "(precision), and what a calibrated score would show "
             "(reliability; ten bins of equal count, bars are 95 % by image, "
             "bins of fewer than five images are left out).") +
         html_groups(html);
}

}  // namespace chexnet
