#include "chexnet/report/run_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "chexnet/config/options.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/interval.hpp"
#include "report_values.hpp"

namespace chexnet {
namespace {

// That of the best setting so far must not choose among settings.
bool may_go_on(const RunSummary& run) {
  static const std::set<std::string> kGoing = {"running", "silent", "waiting",
                                               "not started"};
  return kGoing.contains(run.state);
}

constexpr const char* kSeed = "run.seed";
constexpr const char* kFold = "data.fold";

bool is_fold(const RunSummary& run) {
  return run.config.at(kFold) != "\"off\"";
}

// Which of the runs of one setting it is.
std::pair<std::string, std::string> repetition(const RunSummary& run) {
  return {run.config.at(kSeed), run.config.at(kFold)};
}

std::string no_settings_text(const RunGroup& group) {
  return std::ranges::any_of(group.runs,
                             [](const auto* run) { return is_fold(*run); })
             ? "none but seed and fold"
             : "none but the seed";
}

std::string settings_text(const RunGroup& group) {
  return group.settings.empty() ? no_settings_text(group)
                                : listed(group.settings);
}

// Empty where no run has a validation score.
std::string chosen_text(const RunGroups& compared,
                        const std::vector<RunSummary>& runs) {
  const RunGroup& best = compared.groups.front();
  if (best.val.count == 0) return "";
  const bool is_alone = compared.groups.size() == 1;
  if (!is_alone && !compared.same_validation)
    return std::string(kOtherValidation) + "\n";
  const std::string chosen =
      is_alone
          ? "test AUROC of these"
          : "best by validation: " + settings_text(best) + "; its test AUROC";
  const auto going = std::ranges::count_if(runs, may_go_on);
  if (going > 0)
    return chosen + " is shown when no run goes on (" + counted(going, "run") +
           " may)\n";
  return chosen + " " + spread_text(best.test) + "\n";
}

// The best setting against the next, by validation, over seeds that both have.
std::string paired_text(const std::vector<RunGroup>& groups) {
  if (groups[0].val.count == 0 || groups[1].val.count == 0) return "";
  std::vector<double> differences;
  for (const auto* best : groups[0].runs)
    for (const auto* next : groups[1].runs)
      if (repetition(*best) == repetition(*next) && best->val_auroc.value &&
          next->val_auroc.value)
        differences.push_back(*best->val_auroc.value - *next->val_auroc.value);
  const size_t seeds = differences.size();
  constexpr size_t kShort = 60;  // runs may differ in many settings
  std::string pair =
      settings_text(groups[0]) + " against " + settings_text(groups[1]);
  if (pair.size() > kShort) pair = "the first setting against the second";
  // Their training sets have most images in common.
  if (std::ranges::any_of(groups[0].runs,
                          [](const auto* run) { return is_fold(*run); }))
    return differences.empty()
               ? ""
               : pair + ", on validation: " +
                     fixed(moments_of(differences).mean, 3) +
                     " in the mean of " +
                     counted(static_cast<int64_t>(seeds), "fold") +
                     " of both, which tell no interval, as they share images\n";
  if (seeds < kLeastSeeds)
    return pair + ": " + counted(static_cast<int64_t>(seeds), "seed") +
           " of both tell no difference (submit --seeds " +
           std::to_string(kLeastSeeds) + ")\n";
  const Interval range = interval_over_seeds(differences, 0);
  return pair + ", on validation: " +
         (range.low > 0 ? "higher" : "no difference shown") + ", " +
         fixed(moments_of(differences).mean, 3) + " (" + fixed(range.low, 3) +
         " to " + fixed(range.high, 3) + ", 95 % for other seeds than these " +
         std::to_string(seeds) + ", on the same patients)" +
         (groups.size() > 2
              ? "; picked from " + std::to_string(groups.size()) +
                    " settings, so the true difference is likely smaller"
              : "") +
         "\n";
}

// By key. A BatchNorm that is not synchronized sees the images of its rank
// alone, so the number of ranks is then a setting, whoever chose it.
std::map<std::string, std::string> setting_of(const RunSummary& run) {
  std::map<std::string, std::string> settings;
  for (const auto& [key, value] : run.config)
    if (key != kSeed && (key != kFold || !is_fold(run)) &&
        find_option(key)->effect != Effect::kNone)
      settings[key] = value;
  if (run.config.at("model.sync_batchnorm") == "false" &&
      (run.config.at("model.freeze_until") != "backbone" ||
       run.config.at("model.freeze_epochs") != "0"))
    settings["ranks"] = std::to_string(run.ranks);
  return settings;
}

AurocSpread auroc_spread(const std::vector<const MeanFigure*>& means) {
  AurocSpread spread;
  std::vector<double> values;
  for (const auto* mean : means) {
    if (!mean->value) continue;
    values.push_back(*mean->value);
    spread.findings = values.size() == 1
                          ? mean->findings
                          : std::min(spread.findings, mean->findings);
    spread.most_findings = std::max(spread.most_findings, mean->findings);
    spread.rough = spread.rough || mean->rough;
  }
  static_cast<Spread&>(spread) = spread_of(values);
  return spread;
}

void add_scores(RunGroup& group) {
  std::vector<const MeanFigure*> test, val;
  for (const auto* run : group.runs) {
    const auto found = run->final_auroc.find("test");
    if (found != run->final_auroc.end()) test.push_back(&found->second);
    val.push_back(&run->val_auroc);
  }
  group.test = auroc_spread(test);
  group.val = auroc_spread(val);
}

std::string findings_cell(size_t findings, bool rough) {
  return (findings == 0 ? "-" : std::to_string(findings)) + (rough ? " *" : "");
}

// "7 to 10" where the runs' means are over different findings.
std::string findings_cell(const AurocSpread& spread) {
  std::string text = findings_cell(spread.findings, spread.rough);
  if (spread.findings < spread.most_findings)
    text.insert(std::to_string(spread.findings).size(),
                " to " + std::to_string(spread.most_findings));
  return text;
}

// Of a setting as many lines as keys: runs may differ in many.
std::string ranking_table(const std::vector<RunGroup>& groups, bool ranked) {
  std::vector<std::vector<std::string>> lines = {
      {std::string("settings that differ") + (ranked ? ", best first" : ""),
       "runs", "validation AUROC, mean ± sd", "findings"}};
  for (const auto& group : groups) {
    const auto& keys = group.settings;
    lines.push_back({keys.empty() ? no_settings_text(group) : keys.front(),
                     std::to_string(group.runs.size()),
                     spread_text(static_cast<const Spread&>(group.val)),
                     findings_cell(group.val)});
    for (size_t i = 1; i < keys.size(); ++i)
      lines.push_back({keys[i], "", "", ""});
  }
  return columns(lines);
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  const auto [mean, variance] = moments_of(values);
  Spread spread;
  spread.count = static_cast<int>(values.size());
  spread.mean = mean;
  spread.sd = std::sqrt(variance);
  return spread;
}

std::string spread_text(const Spread& spread) {
  if (spread.count == 0) return "-";
  if (spread.count == 1) return fixed(spread.mean, 4) + " (n = 1)";
  return fixed(spread.mean, 4) + " ± " + fixed(spread.sd, 4) +
         " (n = " + std::to_string(spread.count) + ")";
}

std::string spread_text(const AurocSpread& spread) {
  return spread_text(static_cast<const Spread&>(spread)) +
         (spread.findings < spread.most_findings
              ? " over " + findings_cell(spread) + " findings"
              : over_findings(static_cast<int64_t>(spread.findings),
                              spread.rough));
}

// Keys that differ nowhere are not named: they would make each line as long as
// a config.
RunGroups compare_runs(const std::vector<RunSummary>& runs) {
  RunGroups compared;
  std::vector<const RunSummary*> finished;
  std::vector<std::string> others, without_scores;
  for (const auto& run : runs) {
    if (run.state == kEnsemble) continue;  // none of the runs compared
    if (run.state != "finished")
      others.push_back(run.name + " (" + run.state + ")");
    else if (!run.has_events)
      without_scores.push_back(run.name);
    else
      finished.push_back(&run);
  }
  if (!others.empty())
    compared.remarks.push_back("not counted, because not finished: " +
                               listed(others));
  if (!without_scores.empty())
    compared.remarks.push_back("not counted, because " +
                               std::string(kNoEvents) + ": " +
                               listed(without_scores));
  std::map<std::string, std::set<std::string>> values;
  for (const auto* run : finished)
    for (const auto& [key, value] : setting_of(*run)) values[key].insert(value);
  // Without the record of its start nobody knows how many ranks a run had.
  values["ranks"].erase("0");
  for (const auto* run : finished) {
    RunGroup* group = nullptr;
    std::vector<std::string> settings;
    for (const auto& [key, value] : setting_of(*run))
      if (values[key].size() > 1)
        settings.push_back(key + "=" +
                           (key == "ranks" && value == "0" ? "?" : value));
    const auto found =
        std::ranges::find(compared.groups, settings, &RunGroup::settings);
    if (found == compared.groups.end())
      group = &compared.groups.emplace_back(RunGroup{settings, {}, {}, {}});
    else
      group = &*found;
    const auto same = std::ranges::find_if(group->runs, [&](const auto* other) {
      return repetition(*other) == repetition(*run);
    });
    if (same == group->runs.end())
      group->runs.push_back(run);
    else
      compared.remarks.push_back(run->name +
                                 " is not counted: it has the setting and "
                                 "the seed" +
                                 (is_fold(*run) ? " and fold" : "") + " of " +
                                 (*same)->name);
  }
  // Folds of one setting have several.
  std::set<std::set<std::string>> validations;
  for (auto& group : compared.groups) {
    add_scores(group);
    std::set<std::string> of_group;
    for (const auto* run : group.runs)
      if (run->val_auroc.value) of_group.insert(run->validation_sha256);
    if (!of_group.empty()) validations.insert(of_group);
  }
  compared.same_validation = validations.size() < 2;
  for (const auto* run : finished)
    if (run->rung.starts_with("ends"))
      compared.remarks.push_back(run->name + " " + run->rung);
  for (const auto* run : finished)
    if (run->val_is_collapsed)
      compared.remarks.push_back(run->name + " has collapsed: " + kCollapsed);
  return compared;
}

std::string comparison_text(const std::vector<RunSummary>& runs) {
  std::vector<std::vector<std::string>> lines = {
      {"run", "state", "step", "of", "images/s, lately", "data wait",
       "validation AUROC", "findings"}};
  bool rough = false;
  for (const auto& run : runs) {
    if (!run.has_events) {  // it waits, or nothing is known
      lines.push_back({run.name, run.state, "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const MeanFigure& mean = run.val_auroc;
    rough = rough || mean.rough;
    lines.push_back(
        {run.name, run.state, std::to_string(run.step),
         std::to_string(run.total_steps),
         run.images_per_s > 0 ? fixed(run.images_per_s, 1) : "-",
         run.data_wait_fraction ? fixed(100 * *run.data_wait_fraction, 0) + " %"
                                : "-",
         mean.value ? with_interval(mean.value,
                                    mean.interval
                                        ? std::optional(mean.interval->interval)
                                        : std::nullopt)
                    : "-",
         findings_cell(mean.findings, mean.rough)});
  }
  std::string text = columns(lines);
  RunGroups compared = compare_runs(runs);
  auto& groups = compared.groups;
  if (std::ranges::count(runs, "finished", &RunSummary::state) > 1) {
    if (compared.same_validation)
      std::ranges::stable_sort(groups, std::greater(), [](const auto& group) {
        return std::pair(group.val.count > 0, group.val.mean);
      });
    if (!groups.empty())
      text += "\n" + ranking_table(groups, compared.same_validation) +
              chosen_text(compared, runs);
    if (groups.size() > 1 && compared.same_validation)
      text += paired_text(groups);
    for (const auto& sentence : compared.remarks) text += sentence + "\n";
    for (const auto& run : runs)
      if (run.state == "finished" && !run.has_results)
        text += run.name +
                " has no results.json: `report --compare` leaves it out\n";
  }
  if (rough)
    text +=
        "* rough: no finding has ten positives and ten negatives of five "
        "patients each\n";
  return text;
}

}  // namespace chexnet
