#include "chexnet/report/run_comparison.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "chexnet/core/table.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/interval.hpp"
#include "report_values.hpp"

namespace chexnet {
namespace {

std::optional<double> test_auroc(const RunSummary& run) {
  const auto found = run.final_auroc.find("test");
  return found == run.final_auroc.end() ? std::nullopt
                                        : std::optional(found->second);
}

// That of the best setting so far must not choose among settings.
bool may_go_on(const RunSummary& run) {
  static const std::set<std::string> kGoing = {"running", "silent", "waiting",
                                               "not started"};
  return kGoing.contains(run.state);
}

std::string settings_text(const RunGroup& group) {
  return group.settings.empty() ? "none but the seed" : listed(group.settings);
}

// Empty where no run has a validation score.
std::string chosen_text(const RunGroup& best,
                        const std::vector<RunSummary>& runs) {
  if (best.val.count == 0) return "";
  const std::string chosen =
      best.runs.size() == runs.size()
          ? "test AUROC of these"
          : "best by validation: " + settings_text(best) + "; its test AUROC";
  const auto going = std::ranges::count_if(runs, may_go_on);
  if (going > 0)
    return chosen + " is shown when no run goes on (" + counted(going, "run") +
           " may)\n";
  return chosen + " " + spread_text(best.test) + "\n";
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

// Two runs belong to one group when all keys but these have equal texts. What
// differs nowhere is not named: it would make each line as long as a config.
std::vector<RunGroup> compare_runs(const std::vector<RunSummary>& runs) {
  assert(!runs.empty());
  static const std::set<std::string> kOwn = {"run.seed", "run.name", "run.dir"};
  std::vector<std::string> differing;
  for (const auto& [key, value] : runs.front().config)
    if (!kOwn.contains(key) &&
        std::ranges::any_of(runs, [&](const RunSummary& run) {
          return run.config.at(key) != value;
        }))
      differing.push_back(key);
  std::vector<RunGroup> groups;
  for (const auto& run : runs) {
    std::vector<std::string> settings;
    for (const auto& key : differing)
      settings.push_back(key + "=" + run.config.at(key));
    auto group = std::ranges::find(groups, settings, &RunGroup::settings);
    if (group == groups.end()) {
      groups.push_back({});
      group = groups.end() - 1;
      group->settings = settings;
    }
    group->runs.push_back(&run);
  }
  for (auto& group : groups) {
    std::vector<double> test, val;
    for (const auto* run : group.runs) {
      if (const auto auroc = test_auroc(*run)) test.push_back(*auroc);
      if (run->val_auroc) val.push_back(*run->val_auroc);
    }
    group.test = spread_of(test);
    group.val = spread_of(val);
  }
  return groups;
}

std::string comparison_text(const std::vector<RunSummary>& runs) {
  std::vector<std::vector<std::string>> lines = {{"run", "state", "step", "of",
                                                  "images/s", "data wait",
                                                  "validation AUROC"}};
  std::vector<RunSummary> begun;
  for (const auto& run : runs) {
    if (run.state == "waiting") {
      lines.push_back({run.name, run.state, "-", "-", "-", "-", "-"});
      continue;
    }
    lines.push_back(
        {run.name, run.state, std::to_string(run.step),
         std::to_string(run.total_steps), fixed(run.images_per_s, 1),
         fixed(100 * run.data_wait_fraction, 0) + " %",
         run.val_auroc ? with_interval(run.val_auroc, run.val_interval) : "-"});
    begun.push_back(run);
  }
  std::string text = columns(lines);
  if (begun.size() < 2) return text;
  auto settings = compare_runs(begun);
  std::ranges::stable_sort(settings, std::greater(), [](const auto& group) {
    return std::pair(group.val.count > 0, group.val.mean);
  });
  std::vector<std::vector<std::string>> groups = {
      {"settings that differ, best first", "runs",
       "validation AUROC, mean ± sd"}};
  for (const auto& group : settings) {
    const auto& keys = group.settings;
    groups.push_back({keys.empty() ? "none but the seed" : keys.front(),
                      std::to_string(group.runs.size()),
                      spread_text(group.val)});
    for (size_t i = 1; i < keys.size(); ++i)  // runs may differ in many
      groups.push_back({keys[i], "", ""});
  }
  return text + "\n" + columns(groups) + chosen_text(settings.front(), runs);
}

}  // namespace chexnet
