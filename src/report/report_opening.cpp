// The first screen is for a reader who decides in a minute: sentences and one
// drawing. Every figure of it stands with its interval below.
#include <algorithm>

#include "chexnet/data/findings.hpp"
#include "chexnet/report/plot.hpp"
#include "page.hpp"
#include "published_figures.hpp"
#include "report_sections.hpp"
#include "unit_plot.hpp"
#include "verdict.hpp"

namespace chexnet {
namespace {

std::string images_and_patients(const Json& split) {
  const std::string patients = count_text(split, "patients");
  return count_text(split, "images") + " images" +
         (patients.empty() ? "" : " of " + patients + " patients");
}

std::string drawn_from(const Json& evaluation) {
  const Json& intervals = member(evaluation, "intervals");
  const bool by_patient = text(intervals, "by") == "patient";
  return "95 % intervals by " + count_text(intervals, "resamples") +
         " resamples of " +
         (by_patient ? count_text(intervals, "patients") + " patients"
                     : "images, as patients are not known: too narrow where "
                       "a patient has several");
}

std::string what_it_is(const Json& results, const std::string& split) {
  const Json& model = member(results, "model");
  const Json& splits = member(member(results, "data"), "splits");
  const Json& evaluation = member(member(results, "evaluations"), split);
  std::string story =
      "A " + shown(text(model, "network")) + " that reads chest X-rays of " +
      count_text(model, "input_px") + " x " + count_text(model, "input_px") +
      " pixels, trained on " + images_and_patients(member(splits, "train")) +
      " and scored on " + count_text(evaluation, "images") + " images of the " +
      split + " split";
  const std::string patients =
      count_text(member(evaluation, "intervals"), "patients");
  if (!patients.empty()) story += " (" + patients + " patients)";
  const auto leaked = number(member(results, "data"), "patients_in_two_splits");
  if (!leaked)
    story += ". Whether a patient is in training and test is not known.";
  else if (*leaked > 0)
    story += ". " + number_text(*leaked) +
             " patients are in two splits, so the figures are too good.";
  else
    story += ". No patient is in two of its splits.";
  return html_paragraph(story);
}

std::string verdict_html(const Json& evaluation) {
  const auto mean = number(evaluation, "mean_auroc");
  std::string html =
      "<p>Mean AUROC <strong>" +
      with_interval(mean, interval(evaluation, "mean_auroc_interval")) +
      "</strong>; any finding " +
      with_interval(number(evaluation, "any_finding_auroc_mean_logit"),
                    interval(evaluation, "any_finding_interval")) +
      ".</p>\n";
  return html + html_list(sentences_of(verdicts_of(evaluation)));
}

// The first rule of the list (Youden's), for what can be judged.
std::string decisions_html(const Json& evaluation) {
  HtmlTable table("Called positive at Youden's threshold, chosen on validation",
                  {"finding", "#threshold", "#finds", "#clears", "#PPV"});
  const auto share = [](const Json& point, const char* key) {
    const auto found = number(member(point, key), "value");
    return found ? fixed(100 * *found, 0) + " %" : "-";
  };
  for (const auto& point : member(evaluation, "operating_points")) {
    const auto threshold = number(point, "threshold");
    if (text(point, "rule") != "youden" || !threshold ||
        is_true(point, "few_positives"))
      continue;
    table.add({shown(text(point, "finding")), digits(threshold, 3),
               share(point, "sensitivity"), share(point, "specificity"),
               share(point, "ppv")});
  }
  if (table.empty()) return "";
  return "<h3>At its operating point</h3>\n" + table.html() +
         "<p class=\"soft\">Finds: sensitivity. Clears: specificity. PPV: "
         "share "
         "of the called that have it, at the prevalence of these images. "
         "Findings with fewer than ten positives, here or where the threshold "
         "was chosen, are left out; all of them, with intervals, are "
         "below.</p>\n";
}

// Best first; a finding without a value comes last.
std::string forest_of(const Json& evaluation) {
  std::vector<ForestRow> rows;
  for (const auto& [name, figures] : member(evaluation, "findings").items()) {
    const auto value = number(figures, "auroc");
    const auto range = interval(figures, "auroc_interval");
    rows.push_back({shown(name), value, range,
                    is_true(figures, "few_positives"),
                    with_interval(value, range, 2)});
  }
  if (rows.empty()) return "";
  std::ranges::stable_sort(rows, [](const ForestRow& a, const ForestRow& b) {
    return a.value.value_or(-1) > b.value.value_or(-1);
  });
  std::string svg =
      forest_plot("AUROC of each finding with its interval", rows);
  svg.insert(svg.find(' '), " class=\"forest\"");
  return html_figure(svg,
                     "AUROC: the share of pairs, one image with the "
                     "finding and one without, that are in the right "
                     "order; 0.5 is a coin. " +
                         drawn_from(evaluation) +
                         ". Hollow: fewer than ten positives.");
}

}  // namespace

std::string opening(const Json& results, const std::string& split) {
  const Json& evaluation = member(member(results, "evaluations"), split);
  std::string html = "<h1>" + xml_escaped(text(results, "run")) + "</h1>\n" +
                     html_notice() + what_it_is(results, split);
  if (evaluation.is_null())
    return html + html_paragraph("Nothing was scored: eval.splits is empty.");
  return html +
         "<div class=\"columns summary\"><div>\n<h3>What it separates, "
         "and how surely</h3>\n" +
         verdict_html(evaluation) + decisions_html(evaluation) +
         "</div><div>\n" + forest_of(evaluation) +
         "</div></div>\n<h3>What it must not be used for</h3>\n" +
         html_list(limits_of_use(results, split));
}

std::string figures_section(const Json& results, const std::string& split) {
  const Json& evaluation = member(member(results, "evaluations"), split);
  const Json& findings = member(evaluation, "findings");
  if (findings.empty()) return "";
  const auto& published = figures_of_same_list(results, split);
  std::vector<std::string> columns = {"finding",
                                      "#positives",
                                      "#AUROC (95 %)",
                                      "#DeLong 95 %",
                                      "#average precision (95 %)",
                                      "#prevalence",
                                      "#Brier",
                                      "#ECE"};
  for (const auto& paper : published)
    columns.push_back(std::string("#") + paper.source);
  HtmlTable table(
      "Figures on the " + split + " split, " + drawn_from(evaluation), columns);
  for (const auto& [name, f] : findings.items()) {
    const double positives = number(f, "positives").value_or(0);
    const double all = positives + number(f, "negatives").value_or(0);
    const auto delong = interval(f, "auroc_interval_delong");
    std::vector<std::string> cells = {
        shown(name),
        count_text(f, "positives") +
            (is_true(f, "few_positives") ? " (rough)" : ""),
        with_interval(number(f, "auroc"), interval(f, "auroc_interval")),
        delong ? fixed(delong->low, 3) + " to " + fixed(delong->high, 3) : "-",
        with_interval(number(f, "average_precision"),
                      interval(f, "average_precision_interval")),
        all > 0 ? fixed(positives / all, 3) : "-",
        digits(number(f, "brier")),
        digits(number(member(f, "calibration_error"), "equal_masses"))};
    for (const auto& paper : published) {
      const auto found = paper.auroc.find(name);
      cells.push_back(found == paper.auroc.end() ? "-"
                                                 : fixed(found->second, 3));
    }
    table.add(cells);
  }
  return table.html() +
         "<p class=\"soft\">Average precision (area under the precision-recall "
         "curve) is to be read against the prevalence, which a coin reaches. "
         "Brier score and expected calibration error (ECE, ten bins of equal "
         "count): 0 is best. Rough: fewer than ten positives.</p>\n";
}

}  // namespace chexnet
