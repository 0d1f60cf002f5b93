#include "chexnet/report/run_comparison.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <set>

#include "chexnet/core/table.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

// The sample's standard deviation (divided by n - 1): seeds are a sample of all
// seeds.
Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  spread.count = static_cast<int>(values.size());
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double v : values)
    squares += (v - spread.mean) * (v - spread.mean);
  if (values.size() > 1) spread.sd = std::sqrt(squares / (count - 1));
  return spread;
}

std::string spread_text(const Spread& spread) {
  if (spread.count == 0) return "-";
  if (spread.count == 1) return fixed(spread.mean, 4) + " (n = 1)";
  return fixed(spread.mean, 4) + " ± " + fixed(spread.sd, 4) +
         " (n = " + std::to_string(spread.count) + ")";
}

std::optional<double> test_auroc(const RunSummary& run) {
  const auto found = run.final_auroc.find("test");
  return found == run.final_auroc.end() ? std::nullopt
                                        : std::optional(found->second);
}

std::string auroc_text(const std::optional<double>& auroc) {
  return auroc ? fixed(*auroc, 4) : "-";
}

}  // namespace

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
                                                  "val AUROC", "test AUROC"}};
  std::vector<RunSummary> begun;
  for (const auto& run : runs) {
    if (run.state == "waiting") {
      lines.push_back({run.name, run.state, "-", "-", "-", "-", "-", "-"});
      continue;
    }
    lines.push_back({run.name, run.state, std::to_string(run.step),
                     std::to_string(run.total_steps),
                     fixed(run.images_per_s, 1),
                     fixed(100 * run.data_wait_fraction, 0) + " %",
                     auroc_text(run.val_auroc), auroc_text(test_auroc(run))});
    begun.push_back(run);
  }
  std::string text = columns(lines);
  if (begun.size() < 2) return text;
  std::vector<std::vector<std::string>> groups = {
      {"settings that differ", "runs", "test AUROC, mean ± sd",
       "validation AUROC at that step"}};
  for (const auto& group : compare_runs(begun)) {
    const auto& keys = group.settings;
    groups.push_back({keys.empty() ? "none but the seed" : keys.front(),
                      std::to_string(group.runs.size()),
                      spread_text(group.test), spread_text(group.val)});
    for (size_t i = 1; i < keys.size(); ++i)  // runs may differ in many
      groups.push_back({keys[i], "", "", ""});
  }
  return text + "\n" + columns(groups);
}

}  // namespace chexnet
