// Several runs side by side, those of one setting together.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/report/html_report.hpp"
#include "chexnet/report/run_results.hpp"
#include "compared_runs.hpp"
#include "history.hpp"
#include "page.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// Names are unique: a sweep's runs may share one.
std::vector<Compared> with_results(const std::vector<RunSummary>& summaries,
                                   std::vector<Json> results) {
  std::vector<Compared> runs;
  std::set<std::string> names;
  for (size_t i = 0; i < summaries.size(); ++i) {
    const RunSummary& summary = summaries[i];
    const fs::path folder = summary.folder;
    Compared run{folder, summary.name, std::move(results[i]), "", &summary};
    run.split = main_split(run.results);
    if (run.name.empty() || !names.insert(run.name).second)
      run.name = folder.string();
    runs.push_back(std::move(run));
  }
  return runs;
}

// One without results, or with damaged ones, keeps nobody from comparing the
// others. Fills `results`, one of each run that it returns.
std::vector<RunSummary> runs_with_results(const std::vector<fs::path>& folders,
                                          std::vector<Json>& results,
                                          std::vector<std::string>& sentences) {
  std::vector<RunSummary> runs;
  std::error_code error;
  for (const auto& folder : folders) {
    RunSummary run = summarize_run(folder);
    const auto leave_out = [&](const std::string& why) {
      sentences.push_back(run.name + " (" + run.state +
                          ") is left out: " + why);
    };
    if (is_ensemble_folder(folder)) {
      leave_out(
          "its own page has it beside its members, and `evaluate --predictions "
          "… --against …` compares tables");
      continue;
    }
    if (!fs::exists(folder / "results.json", error)) {
      leave_out("it has no final scores");
      continue;
    }
    try {
      results.push_back(read_results(folder));
      if (const std::string shared = shared_pictures_text(results.back());
          !shared.empty())
        sentences.push_back(run.name + "'s figures: " + shared);
    } catch (const Error& e) {
      log_warning(e.what());
      leave_out("its results.json is damaged");
      continue;
    }
    runs.push_back(std::move(run));
  }
  return runs;
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
         count_text(run.evaluation(), "images"),
         mean_auroc_text(run.evaluation()),
         with_interval(number(run.evaluation(), "any_finding_auroc_mean_logit"),
                       interval(run.evaluation(), "any_finding_interval"))});
  }
  return table.html();
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

// All, as the reader finds them nowhere else.
std::string keys_text(const Setting& setting) {
  return listed(setting.keys, setting.keys.size());
}

std::vector<std::string> run_names(const Setting& setting) {
  std::vector<std::string> names;
  for (const auto* run : setting.runs) names.push_back(run->name);
  return names;
}

// What differs, with paths as value_without_folders() has them, is the name of
// a setting where it is short and no other has it; else a sentence tells which
// it is, with its runs, as of paths the last parts may be equal.
std::vector<Setting> settings_of(const std::vector<Compared>& runs,
                                 const std::vector<RunSummary>& summaries,
                                 const std::vector<RunGroup>& groups,
                                 std::vector<std::string>& sentences) {
  constexpr size_t kShort = 60;
  std::vector<Setting> settings;
  std::map<std::string, int> named;
  for (const auto& group : groups) {
    Setting& setting = settings.emplace_back();
    for (const auto& text : group.settings) {
      const auto end = text.find('=');
      const std::string key = text.substr(0, end);
      setting.keys.push_back(key + "=" +
                             value_without_folders(key, text.substr(end + 1)));
    }
    setting.name = setting.keys.empty() ? "all" : keys_text(setting);
    ++named[setting.name];
    for (const auto* run : group.runs)
      setting.runs.push_back(&runs[run - summaries.data()]);
    setting.val = group.val;
    setting.test = group.test;
  }
  for (size_t i = 0; i < settings.size(); ++i) {
    std::string& name = settings[i].name;
    if (name.size() <= kShort && named[name] == 1) continue;
    name = "setting " + std::to_string(i + 1);
    sentences.push_back(name + " is " + keys_text(settings[i]) + " (" +
                        listed(run_names(settings[i])) + ")");
  }
  return settings;
}

std::string settings_table(const std::vector<Setting>& settings) {
  HtmlTable table("Settings, each over its seeds",
                  {"setting", "runs", "#validation AUROC, mean ± sd",
                   "#test AUROC, mean ± sd"});
  for (const auto& setting : settings) {
    const std::string keys = keys_text(setting);
    const bool is_named = keys.empty() || keys == setting.name;
    table.add({setting.name + (is_named ? "" : ": " + keys),
               listed(run_names(setting)), spread_text(setting.val),
               spread_text(setting.test)});
  }
  return table.html();
}

// The findings of all runs, each once: data sets name some differently.
std::vector<std::string> findings_of(const std::vector<Compared>& runs) {
  std::vector<std::string> findings;
  for (const auto& run : runs)
    for (const auto& [name, _] : member(run.evaluation(), "findings").items())
      if (!find_finding(findings, name)) findings.push_back(name);
  return findings;
}

const Json& figures_of_finding(const Compared& run,
                               const std::string& finding) {
  static const Json kNone;
  for (const auto& [name, figures] :
       member(run.evaluation(), "findings").items())
    if (find_finding({name}, finding)) return figures;
  return kNone;
}

std::string auroc_of(const Setting& setting, const std::string& finding) {
  std::vector<double> values;
  for (const auto* run : setting.runs)
    if (const auto value = number(figures_of_finding(*run, finding), "auroc"))
      values.push_back(*value);
  if (setting.runs.size() > 1) return spread_text(spread_of(values));
  const Json& figures = figures_of_finding(*setting.runs.front(), finding);
  return with_interval(number(figures, "auroc"),
                       interval(figures, "auroc_interval")) +
         (is_true(figures, "few_positives") ? " (rough)" : "");
}

std::string figures_by_setting(const std::vector<Compared>& runs,
                               const std::vector<Setting>& settings) {
  std::vector<std::string> heads = {"finding"};
  for (const auto& setting : settings) heads.push_back("#" + setting.name);
  HtmlTable table(
      "AUROC of each finding (95 %); of several seeds mean and standard "
      "deviation",
      heads);
  for (const auto& finding : findings_of(runs)) {
    std::vector<std::string> cells = {shown(finding)};
    for (const auto& setting : settings)
      cells.push_back(auroc_of(setting, finding));
    table.add(cells);
  }
  return table.html();
}

// Images a second by ranks, where they differ; else empty.
std::string scaling(const std::vector<Compared>& runs) {
  struct Rate {
    std::string name;
    double ranks, images_per_s;
  };
  std::vector<Rate> rates;
  for (const auto& run : runs) {
    const RunSummary& summary = *run.summary;
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

ComparisonPage comparison_page(const std::vector<fs::path>& folders) {
  if (folders.size() < 2)
    throw ConfigError(
        "[report] one run cannot be compared. Hint: report "
        "--compare RUN RUN...");
  std::vector<std::string> sentences;
  std::vector<Json> results;
  const std::vector<RunSummary> summaries =
      runs_with_results(folders, results, sentences);
  if (summaries.size() < 2)
    for (const auto& folder : folders) read_results(folder);  // says which
  const std::vector<Compared> runs =
      with_results(summaries, std::move(results));
  for (const auto& run : runs)
    if (!member(run.results, "resume_changes").empty())
      sentences.push_back(run.name +
                          " was resumed under other conditions: its report "
                          "says what it is of");
  RunGroups compared = compare_runs(summaries);
  std::ranges::move(compared.remarks, std::back_inserter(sentences));
  size_t counted_runs = 0;
  for (const auto& group : compared.groups) counted_runs += group.runs.size();
  if (counted_runs < 2) {
    std::string why;
    for (const auto& sentence : sentences) why += "; " + sentence;
    throw ConfigError(
        "[report] of {} only {} can be compared{}. Hint: report --compare RUN "
        "RUN... of finished runs",
        counted(static_cast<int64_t>(folders.size()), "run"), counted_runs,
        why);
  }
  if (!compared.same_validation) sentences.emplace_back(kOtherValidation);
  const std::vector<Setting> settings =
      settings_of(runs, summaries, compared.groups, sentences);
  const std::string tables = setting_differences(settings, sentences);
  std::string html = html_page(
      "Runs compared - chexnet-train",
      "<h1>" + std::to_string(runs.size()) + " runs compared</h1>\n" +
          html_notice() +
          html_section("overview", "Overview",
                       settings_table(settings) + overview(runs)) +
          html_section("figures", "Figures of each finding",
                       figures_by_setting(runs, settings)) +
          scaling(runs) + html_section("courses", "Validation", courses(runs)) +
          html_section("differences", "Differences, image by image", tables) +
          (sentences.empty() ? ""
                             : html_section("better", "Which setting is better",
                                            html_list(sentences))));
  return {std::move(html), std::move(sentences)};
}

}  // namespace chexnet
