// Two settings are compared image by image, where all their runs scored the
// same ones: seeds of one setting are no recipes of their own.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "chexnet/data/findings.hpp"
#include "chexnet/data/split_table.hpp"
#include "chexnet/eval/comparison.hpp"
#include "compared_runs.hpp"
#include "page.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

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

// A run of each seed; the second of two that have the same says nothing more.
std::vector<const Compared*> runs_by_seed(const Setting& setting) {
  std::map<std::string, const Compared*> by_seed;
  for (const auto* run : setting.runs) by_seed.emplace(run->seed(), run);
  std::vector<const Compared*> runs;
  for (const auto& [seed, run] : by_seed) runs.push_back(run);
  return runs;
}

using Pairs =
    std::pair<std::vector<const Compared*>, std::vector<const Compared*>>;

// As many runs of both: those of one seed meet, the others in any order.
Pairs pairs_of(const Setting& a, const Setting& b) {
  auto of_a = runs_by_seed(a), of_b = runs_by_seed(b);
  const auto shared_first = [](auto& runs, const auto& others) {
    std::set<std::string> seeds;
    for (const auto* run : others) seeds.insert(run->seed());
    std::ranges::stable_partition(
        runs, [&](const auto* run) { return seeds.contains(run->seed()); });
  };
  const auto all_of_a = of_a;
  shared_first(of_a, of_b);
  shared_first(of_b, all_of_a);
  const size_t seeds = std::min(of_a.size(), of_b.size());
  of_a.resize(seeds);
  of_b.resize(seeds);
  return {of_a, of_b};
}

// Tables of predictions are read once.
class PredictionsOfRuns {
 public:
  // Empty where the table was changed after the run.
  const Predictions* of(const Compared& run) {
    const auto [found, is_new] = read_.try_emplace(&run);
    if (is_new) {
      Predictions predictions = predictions_of(run);
      if (belongs_to(scored_columns(predictions, {}), run.evaluation()))
        found->second = std::move(predictions);
    }
    return found->second ? &*found->second : nullptr;
  }

 private:
  std::map<const Compared*, std::optional<Predictions>> read_;
};

// "b better than a by 0.008 (-0.004 to 0.020) …: not shown"
std::string sentence_of(const Setting& a, const Setting& b,
                        const RecipeDifference& mean, size_t seeds) {
  const bool turned = *mean.value < 0;
  auto range = mean.interval;
  if (turned && range) range = Interval{-range->high, -range->low};
  const std::string sentence =
      (turned ? a : b).name + " better than " + (turned ? b : a).name + " by " +
      with_interval(std::abs(*mean.value), range) + " in mean AUROC";
  if (!range)
    return sentence + ": no finding has images enough for an interval";
  return sentence + " for a new training and new patients: " +
         (range->low > 0 ? "shown" : "not shown") + " (" +
         counted(static_cast<int64_t>(seeds), "seed") + " each)";
}

std::string difference_table(const RecipeComparison& found, size_t seeds) {
  HtmlTable table("Difference of the AUROCs on " +
                      std::to_string(found.images) +
                      " images that all have scored, mean of " +
                      counted(static_cast<int64_t>(seeds), "seed") +
                      (seeds < kLeastSeeds
                           ? " (95 % for new patients, of these networks alone)"
                           : " (95 % for a new training and new patients)"),
                  {"finding", "#positives", "#difference"});
  table.add({"mean", "", with_interval(found.mean.value, found.mean.interval)});
  for (const auto& f : found.findings)
    table.add({shown(f.finding),
               std::to_string(f.positives) +
                   (f.positives < kFewPositives ? " (rough)" : ""),
               with_interval(f.value, f.interval)});
  return table.html();
}

// b minus a, resampled together; adds to `sentences` where both have seeds
// enough.
std::string difference_of(const Setting& a, const Setting& b,
                          PredictionsOfRuns& tables,
                          std::vector<std::string>& sentences) {
  const auto [of_a, of_b] = pairs_of(a, b);
  const std::string heading =
      "<h3>" + html_text(b.name + " minus " + a.name) + "</h3>\n";
  const auto refused = [&](const std::string& why) {
    sentences.push_back(b.name + " and " + a.name +
                        " are not compared: " + why);
    return heading + html_paragraph("Not compared: " + why + ".");
  };
  std::vector<const Predictions*> first, second;
  for (const auto& [runs, predictions] :
       {std::pair(&of_a, &first), std::pair(&of_b, &second)})
    for (const auto* run : *runs) {
      if (run->sha256().empty() || run->sha256() != of_a.front()->sha256())
        return refused(
            "they were not scored on the same images, so only their own "
            "intervals can be looked at");
      predictions->push_back(tables.of(*run));
      if (predictions->back() == nullptr)
        return refused("predictions_" + run->split + ".csv of " + run->name +
                       " was changed after the run and is not what its "
                       "figures are of");
    }
  constexpr size_t kResamples = 2000;  // the variance is then within 3 %
  const RecipeComparison found =
      compare_recipes(first, second, {.resamples = kResamples});
  if (first.size() >= kLeastSeeds && found.mean.value)
    sentences.push_back(sentence_of(a, b, found.mean, first.size()));
  return heading + difference_table(found, first.size());
}

bool has_seeds_enough(const Setting& setting) {
  return runs_by_seed(setting).size() >= kLeastSeeds;
}

}  // namespace

std::string setting_differences(const std::vector<Setting>& settings,
                                std::vector<std::string>& sentences) {
  if (settings.size() == 1)
    return html_paragraph(
        "The runs differ in the seed alone: there are no two settings to "
        "compare.");
  PredictionsOfRuns tables;
  std::string html;
  std::vector<std::string> few;
  for (size_t i = 0; i < settings.size(); ++i) {
    const bool enough = has_seeds_enough(settings[i]);
    if (!enough)
      few.push_back(
          settings[i].name + " (" +
          counted(static_cast<int64_t>(runs_by_seed(settings[i]).size()),
                  "seed") +
          ")");
    for (size_t j = i + 1; j < settings.size(); ++j)
      if (i == 0 || (enough && has_seeds_enough(settings[j])))
        html += difference_of(settings[i], settings[j], tables, sentences);
  }
  if (!few.empty())
    sentences.push_back(
        "too few seeds to say which is better: " + listed(few) +
        "; one seed tells nothing of another training, and two seeds cannot "
        "tell differences below about 0.05 (three or more are needed)");
  return html + html_paragraph(
                    "Each interval is of its difference alone: of twenty, one "
                    "leaves out 0 by chance.");
}

}  // namespace chexnet
