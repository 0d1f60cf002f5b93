// Several runs side by side. The first is what the others are measured
// against: image by image where both scored the same ones.
#include <algorithm>
#include <map>
#include <set>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/split_table.hpp"
#include "chexnet/eval/comparison.hpp"
#include "chexnet/report/html_report.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/report/run_summary.hpp"
#include "history.hpp"
#include "page.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

struct Compared {
  fs::path folder;
  std::string name;
  Json results;
  std::string split;
  const Json& evaluation() const {
    return member(member(results, "evaluations"), split);
  }
  std::string sha256() const {
    return text(member(evaluation(), "split"), "sha256");
  }
};

// Names are unique: a sweep's runs may share one.
std::vector<Compared> read_runs(const std::vector<fs::path>& folders) {
  std::vector<Compared> runs;
  std::set<std::string> names;
  for (const auto& folder : folders) {
    Compared run{folder, "", read_results(folder), ""};
    run.split = main_split(run.results);
    run.name = fs::absolute(folder).lexically_normal().filename().string();
    if (run.name.empty() || !names.insert(run.name).second)
      run.name = folder.string();
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string mean_of(const Json& evaluation) {
  return with_interval(number(evaluation, "mean_auroc"),
                       interval(evaluation, "mean_auroc_interval"));
}

std::string overview(const std::vector<Compared>& runs) {
  HtmlTable table("The runs; intervals are 95 %",
                  {"run", "network", "#input px", "#training images",
                   "scored on", "#images", "#mean AUROC", "#any finding"});
  for (const auto& run : runs) {
    const Json& model = member(run.results, "model");
    const Json& splits = member(member(run.results, "data"), "splits");
    table.add(
        {run.name, shown(text(model, "network")), count_text(model, "input_px"),
         count_text(member(splits, "train"), "images"), run.split,
         count_text(run.evaluation(), "images"), mean_of(run.evaluation()),
         with_interval(number(run.evaluation(), "any_finding_auroc_mean_logit"),
                       interval(run.evaluation(), "any_finding_interval"))});
  }
  return table.html();
}

std::vector<std::string> heads_of(const std::vector<Compared>& runs,
                                  const std::string& first,
                                  const std::string& mark = "") {
  std::vector<std::string> heads = {first};
  for (const auto& run : runs) heads.push_back(mark + run.name);
  return heads;
}

// Of paths, and of lists of them, the last parts: the page is passed on.
std::string value_without_folders(const std::string& key, std::string value) {
  const ConfigOption* option = find_option(key);
  if (option == nullptr || !option->is_path) return value;
  for (size_t end = value.rfind('/'); end != std::string::npos;
       end = value.rfind('/')) {
    const size_t before = value.find_last_of("[ \",", end);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    value.erase(begin, end + 1 - begin);
  }
  return value;
}

std::string settings_that_differ(const std::vector<Compared>& runs) {
  static const std::set<std::string> kOwn = {"run.dir", "run.name"};
  HtmlTable table("Config keys whose values differ", heads_of(runs, "key"));
  std::vector<std::map<std::string, std::string>> configs;
  for (const auto& run : runs)
    configs.push_back(summarize_run(run.folder).config);
  for (const auto& [key, value] : configs.front()) {
    std::vector<std::string> cells = {key};
    for (auto& config : configs) cells.push_back(config[key]);
    const bool differs =
        std::ranges::any_of(cells.begin() + 1, cells.end(),
                            [&](const auto& cell) { return cell != value; });
    if (!differs || kOwn.contains(key)) continue;
    for (auto& cell : cells) cell = value_without_folders(key, cell);
    table.add(cells);
  }
  return table.empty() ? html_paragraph("None.") : table.html();
}

// The findings of all runs, each once: data sets name some differently.
std::vector<std::string> findings_of(const std::vector<Compared>& runs) {
  std::vector<std::string> findings;
  for (const auto& run : runs)
    for (const auto& [name, _] : member(run.evaluation(), "findings").items())
      if (!find_finding(findings, name)) findings.push_back(name);
  return findings;
}

std::string auroc_of(const Compared& run, const std::string& finding) {
  for (const auto& [name, figures] :
       member(run.evaluation(), "findings").items())
    if (find_finding({name}, finding))
      return with_interval(number(figures, "auroc"),
                           interval(figures, "auroc_interval"));
  return "not scored";
}

std::string figures_by_run(const std::vector<Compared>& runs) {
  HtmlTable table("AUROC of each finding (95 %)",
                  heads_of(runs, "finding", "#"));
  for (const auto& finding : findings_of(runs)) {
    std::vector<std::string> cells = {shown(finding)};
    for (const auto& run : runs) cells.push_back(auroc_of(run, finding));
    table.add(cells);
  }
  return table.html();
}

// With the patients that split.csv of the run knows.
Predictions predictions_of(const Compared& run) {
  Predictions predictions = read_predictions(
      (run.folder / ("predictions_" + run.split + ".csv")).string(), nullptr);
  std::map<std::string, std::string> patients;
  for (auto& row : read_splits_csv(run.folder / "split.csv"))
    patients[row.image] = std::move(row.patient);
  for (const auto& image : predictions.images) {
    const auto found = patients.find(image);
    predictions.patients.push_back(found == patients.end() ? image
                                                           : found->second);
  }
  return predictions;
}

std::string difference_text(const Estimate& difference,
                            const std::optional<double>& p) {
  const auto range = difference.interval
                         ? std::optional(difference.interval->interval)
                         : std::nullopt;
  return with_interval(difference.value, range) +
         (p ? ", p " + (*p < 0.001 ? "< 0.001" : fixed(*p, 3)) : "");
}

// Of `run` minus `first`, resampled together.
std::string paired(const Compared& first, const Compared& run) {
  const std::string heading =
      "<h3>" + html_text(run.name + " minus " + first.name) + "</h3>\n";
  if (first.sha256().empty() || first.sha256() != run.sha256())
    return heading + html_paragraph(
                         "They were not scored on the same images, so only "
                         "the intervals above can be looked at.");
  const Predictions of_run = predictions_of(run),
                    of_first = predictions_of(first);
  for (const auto& [one, predictions] :
       {std::pair(&run, &of_run), std::pair(&first, &of_first)})
    if (!belongs_to(scored_columns(*predictions, {}), one->evaluation()))
      return heading +
             html_paragraph("predictions_" + one->split + ".csv of " +
                            one->name +
                            " was changed after the run: it is not what its "
                            "figures are of, so nothing is compared.");
  const Comparison found = compare(of_run, of_first, {}, {});
  HtmlTable table(
      "Difference of the AUROCs on " + std::to_string(found.images) +
          " images that both have scored (95 %), and the p of no difference",
      {"finding", "#positives", "#difference"});
  table.add({"mean", "", difference_text(found.mean_difference, found.mean_p)});
  for (const auto& f : found.findings)
    table.add(
        {shown(f.finding),
         std::to_string(f.positives) + (f.few_positives() ? " (rough)" : ""),
         difference_text(f.difference, f.p)});
  return heading + table.html();
}

// Images a second by ranks, where they differ; else empty.
std::string scaling(const std::vector<Compared>& runs) {
  struct Rate {
    std::string name;
    double ranks, images_per_s;
  };
  std::vector<Rate> rates;
  for (const auto& run : runs) {
    const RunSummary summary = summarize_run(run.folder);
    if (summary.ranks > 0 && summary.images_per_s > 0)
      rates.push_back(
          {run.name, static_cast<double>(summary.ranks), summary.images_per_s});
  }
  std::ranges::stable_sort(rates, {}, &Rate::ranks);
  if (rates.empty() || rates.front().ranks == rates.back().ranks) return "";
  HtmlTable table(
      "Images a second at the end of training; efficiency: by rank, against "
      "the fewest ranks",
      {"run", "#ranks", "#images/s", "#speed-up", "#efficiency"});
  const Rate& first = rates.front();
  for (const auto& rate : rates) {
    const double speed_up = rate.images_per_s / first.images_per_s;
    table.add({rate.name, fixed(rate.ranks, 0), fixed(rate.images_per_s, 1),
               fixed(speed_up, 2),
               fixed(100 * speed_up * first.ranks / rate.ranks, 0) + " %"});
  }
  return html_section("scaling", "Scaling", table.html());
}

std::string courses(const std::vector<Compared>& runs) {
  Plot loss{.title = "Validation loss",
            .x_label = "step",
            .y_label = "",
            .curves = {},
            .x_from_zero = true};
  Plot auroc = loss;
  auroc.title = "Validation AUROC";
  for (const auto& run : runs) {
    History history = history_of(run.folder);
    history.val_loss.name = history.val_auroc.name = run.name;
    loss.curves.push_back(std::move(history.val_loss));
    auroc.curves.push_back(std::move(history.val_auroc));
  }
  return html_grid(html_figure(svg_plot(loss), "Mean binary cross-entropy") +
                   html_figure(svg_plot(auroc), "Mean over findings"));
}

}  // namespace

std::string comparison_html(const std::vector<fs::path>& folders) {
  if (folders.size() < 2)
    throw ConfigError(
        "[report] one run cannot be compared. Hint: report "
        "--compare RUN RUN...");
  const std::vector<Compared> runs = read_runs(folders);
  std::string differences;
  for (size_t i = 1; i < runs.size(); ++i)
    differences += paired(runs.front(), runs[i]);
  if (runs.size() > 2)
    differences += html_paragraph(
        "Of many differences some are beyond chance by chance: "
        "one of twenty at p = 0.05.");
  return html_page(
      "Runs compared - chexnet-train",
      "<h1>" + std::to_string(runs.size()) + " runs compared</h1>\n" +
          html_notice() + html_section("overview", "Overview", overview(runs)) +
          html_section("differences", "Differences, image by image",
                       differences) +
          html_section("figures", "Figures of each finding",
                       figures_by_run(runs)) +
          html_section("settings", "Settings that differ",
                       settings_that_differ(runs)) +
          scaling(runs) + html_section("courses", "Validation", courses(runs)));
}

}  // namespace chexnet
