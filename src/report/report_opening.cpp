// The first screen is for a reader who decides in a minute: sentences and one
// drawing. Every figure of it stands with its interval below.
#include <algorithm>
#include <functional>
#include <utility>

#include "chexnet/data/findings.hpp"
#include "chexnet/report/plot.hpp"
#include "chexnet/report/run_results.hpp"
#include "discrimination.hpp"
#include "page.hpp"
#include "published_figures.hpp"
#include "report_sections.hpp"
#include "unit_plot.hpp"

namespace chexnet {
namespace {

constexpr const char* kNoInterval =
    " No interval: fewer than five patients with the finding, or without, or "
    "no resample differs.";

// "10,000"
std::string grouped(std::string digits) {
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string grouped(const Json& from, const char* key) {
  return grouped(count_text(from, key));
}

// "836 X-rays of 644 patients"
std::string images_and_patients(const std::string& images,
                                const std::string& patients) {
  return plural(images, "X-ray") +
         (patients.empty() ? "" : " of " + plural(patients, "patient"));
}

// "836 X-rays of 644 patients", "500 studies of 500 patients, each with one
// score of all its images"
std::string what_was_tested(const Json& evaluation) {
  const std::string images = grouped(evaluation, "images");
  const std::string patients =
      grouped(member(evaluation, "intervals"), "patients");
  const std::string unit = text(evaluation, "by");
  const auto by = find_choice<ScoredBy>(unit);
  if (by == ScoredBy::kImage) return images_and_patients(images, patients);
  return plural(images, unit) +
         (by == ScoredBy::kPatient ? ""
                                   : " of " + plural(patients, "patient")) +
         ", each with one score of all its images";
}

std::string drawn_from(const Json& evaluation) {
  const Json& intervals = member(evaluation, "intervals");
  const bool by_patient = text(intervals, "by") == "patient";
  return "95 % intervals by " + grouped(intervals, "resamples") +
         " resamples of " +
         (by_patient ? plural(grouped(intervals, "patients"), "patient")
                     : "images, as patients are not known: too narrow where "
                       "a patient has several");
}

std::string what_of_patients(const Json& results) {
  const auto leaked = number(member(results, "data"), "patients_in_two_splits");
  if (!leaked)
    return " Whether a patient is in training and test is not known.";
  if (*leaked > 0)
    return " Patients in two splits: " + number_text(*leaked) +
           ", so the figures are too good.";
  if (!shared_pictures_text(results).empty())
    return " No patient is in both by the names, but pictures are.";
  return " No patient is in both.";
}

std::string what_it_is(const Json& results, const std::string& split) {
  const Json& model = member(results, "model");
  const Json& train =
      member(member(member(results, "data"), "splits"), "train");
  const Json& evaluation = member(member(results, "evaluations"), split);
  const std::string side = count_text(model, "input_px");
  std::string story =
      (is_ensemble(results) ? networks_text(results) + ", which see"
                            : "A " + networks_text(results) + " that sees") +
      " a chest X-ray at " + side + " x " + side + " pixels. Trained on " +
      images_and_patients(grouped(train, "images"), grouped(train, "patients"));
  if (evaluation.is_null()) return html_paragraph(story + ".");
  if (split == "val" && is_out_of_fold(results))
    return html_paragraph(
        story + ". The mean itself was not tested: figures are of " +
        what_was_tested(evaluation) +
        ", each scored by those networks alone that were not trained on its "
        "patient.");
  story += ", tested on " + what_was_tested(evaluation) +
           (split == "test" ? "." : " of the " + split + " split.");
  return html_paragraph(story + what_of_patients(results));
}

std::string discrimination_html(const Json& evaluation) {
  std::string html =
      "<p>Mean AUROC <strong>" + mean_auroc_text(evaluation, 2) +
      "</strong>; any finding against none " +
      with_interval(number(evaluation, "any_finding_auroc_mean_logit"),
                    interval(evaluation, "any_finding_interval"), 2) +
      ".</p>\n";
  return html + html_list(sentences_of(discrimination_of(evaluation)));
}

// The first rule of the list (Youden's), for findings with enough cases.
std::string decisions_html(const Json& evaluation) {
  HtmlTable table(
      "Called positive from this score on (Youden's threshold, chosen on "
      "validation)",
      {"finding", "#score", "#finds", "#clears", "#right"});
  const auto share = [](const Json& point, const char* key) {
    const auto found = number(member(point, key), "value");
    return found ? fixed(100 * *found, 0) + " %" : "-";
  };
  for (const auto& point : member(evaluation, "operating_points")) {
    const auto threshold = number(point, "threshold");
    if (text(point, "rule") != "youden" || !threshold ||
        is_true(point, "few_positives"))
      continue;
    table.add({shown(text(point, "finding")), significant(*threshold, 2),
               share(point, "sensitivity"), share(point, "specificity"),
               share(point, "ppv")});
  }
  if (table.empty()) return "";
  return "<h3>Yes or no</h3>\n" + table.html() +
         "<p class=\"small\">Finds: share of the X-rays with the finding that "
         "it calls positive (sensitivity). Clears: share of those without it "
         "that it does not (specificity). Right: share of its positive calls "
         "that have the finding (PPV); lower where the finding is rarer than "
         "here. Not shown: fewer than ten positives, here or where the "
         "threshold was chosen.</p>\n";
}

// Best first; rough or missing values come last.
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
  std::ranges::stable_sort(rows, std::ranges::greater(), [](const auto& row) {
    return std::pair(!row.rough, row.value.value_or(-1));
  });
  const bool lacks_interval = std::ranges::any_of(
      rows, [](const auto& row) { return row.value && !row.range; });
  std::string svg =
      forest_plot("AUROC of each finding with its interval", rows);
  svg.insert(svg.find(' '), " class=\"forest\"");
  return html_figure(svg,
                     "AUROC: how often, of one X-ray with the finding and one "
                     "without, the former scores higher; a coin has 0.5. " +
                         drawn_from(evaluation) +
                         ", of each finding taken alone. Hollow: fewer than "
                         "ten positives." +
                         (lacks_interval ? kNoInterval : ""));
}

}  // namespace

std::string opening(const Json& results, const std::string& split) {
  const Json& evaluation = member(member(results, "evaluations"), split);
  std::string html = "<h1>" + xml_escaped(run_name(results)) + "</h1>\n" +
                     html_notice() + what_it_is(results, split);
  if (evaluation.is_null())
    return html + html_paragraph("Nothing was scored: eval.splits is empty.");
  return html +
         "<div class=\"columns summary\"><div>\n<h3>Which findings it tells "
         "apart</h3>\n" +
         discrimination_html(evaluation) + decisions_html(evaluation) +
         "</div><div>\n" + forest_of(evaluation) +
         "<h3>Not to be used for</h3>\n" +
         html_list(limits_of_use(results, split)) + "</div></div>\n";
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
         "count): 0 is best. Rough: fewer than ten positives." +
         std::string(kNoInterval) + "</p>\n";
}

}  // namespace chexnet
