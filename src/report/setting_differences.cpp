// Two settings are compared image by image, where all their runs scored the
// same ones: seeds of one setting are one recipe.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/split_table.hpp"
#include "chexnet/eval/comparison.hpp"
#include "chexnet/report/run_results.hpp"
#include "compared_runs.hpp"
#include "page.hpp"
#include "report_sections.hpp"

namespace chexnet {
namespace {

// As many runs of both: those of one seed meet, the others in any order.
struct Pairs {
  std::vector<const Compared*> a, b;
  size_t same_seeds = 0;
  std::string seeds() const {
    return counted(static_cast<int64_t>(a.size()), "seed");
  }
};

Pairs pairs_of(const Setting& a, const Setting& b) {
  const auto shared_first = [](auto& runs, const auto& others) {
    std::set<std::string> seeds;
    for (const auto* run : others) seeds.insert(run->seed());
    const auto rest = std::stable_partition(
        runs.begin(), runs.end(),
        [&](const auto* run) { return seeds.contains(run->seed()); });
    std::sort(runs.begin(), rest, [](const auto* x, const auto* y) {
      return x->seed() < y->seed();
    });
    return static_cast<size_t>(rest - runs.begin());
  };
  Pairs pairs = {a.runs, b.runs};
  pairs.same_seeds = shared_first(pairs.a, b.runs);
  shared_first(pairs.b, a.runs);
  const size_t seeds = std::min(pairs.a.size(), pairs.b.size());
  pairs.a.resize(seeds);
  pairs.b.resize(seeds);
  return pairs;
}

// Tables of predictions are read once.
class PredictionsOfRuns {
 public:
  struct Table {
    Predictions predictions;
    std::string problem;  // empty, or why there are none
  };
  const Table& of(const Compared& run) {
    const auto [found, is_new] = read_.try_emplace(&run);
    if (is_new) found->second = read(run);
    return found->second;
  }

 private:
  // The page may be passed on, and names no path.
  static Table read(const Compared& run) {
    const std::string name = "predictions_" + run.split + ".csv";
    std::error_code error;
    for (const auto& file : {name, std::string("split.csv")})
      if (!std::filesystem::exists(run.folder / file, error))
        return {{}, file + " of " + run.name + " is not there"};
    try {
      if (!is_scored_table(run.folder / name, run.evaluation()))
        return {{},
                name + " of " + run.name +
                    " was changed after the run (another SHA-256)"};
      return {predictions_of_run(run.folder / name,
                                 read_splits_csv(run.folder / "split.csv")),
              ""};
    } catch (const DataError& e) {
      log_warning(e.what());
      return {{},
              name + " or split.csv of " + run.name +
                  " is damaged or was changed after the run"};
    } catch (const Error& e) {
      log_warning(e.what());
      return {{}, name + " or split.csv of " + run.name + " cannot be read"};
    }
  }

  std::map<const Compared*, Table> read_;
};

// Which seeds are compared: "3 seeds each, 2 of them the same".
std::string seeds_text(const Setting& a, const Setting& b, const Pairs& pairs) {
  std::string text = pairs.seeds() + " each";
  const size_t seeds = pairs.a.size();
  if (pairs.same_seeds < seeds)
    text +=
        ", " +
        (pairs.same_seeds == 0 ? "none" : std::to_string(pairs.same_seeds)) +
        " of them the same";
  for (const auto* setting : {&a, &b})
    if (setting->runs.size() > seeds)
      text += ", " + std::to_string(setting->runs.size() - seeds) +
              " more of " + setting->name + " left out";
  return text;
}

// "no difference shown between a and b: mean AUROC on test +0.008 (-0.004 to
// 0.020) for b, …". Nothing that is not shown is called better.
std::string sentence_of(const Setting& a, const Setting& b,
                        const RecipeDifference& mean, const Pairs& pairs,
                        size_t comparisons) {
  const std::string two = a.name + " and " + b.name;
  const auto& range = mean.of_all_recipes;
  if (!range)
    return "no difference shown between " + two +
           ": no finding has images enough for an interval";
  const std::string seeds = seeds_text(a, b, pairs);
  if (pairs.a.size() < kLeastSeeds) {
    const double half =
        std::max(range->high - *mean.value, *mean.value - range->low);
    return "no difference shown between " + two + ": of " + seeds +
           ", differences in mean AUROC below " + fixed(half, 3) +
           " cannot be told from chance (three or more seeds are needed; of "
           "two seeds this bound itself may be several times off)";
  }
  const std::string figure =
      ": mean AUROC on " + pairs.a.front()->split + " " +
      signed_with_interval(mean.value, range) + " for " + b.name +
      ", 95 % for a new training and new patients, " +
      (comparisons == 1
           ? ""
           : "in all " + std::to_string(comparisons) + " comparisons, ") +
      seeds;
  if (range->low <= 0 && 0 <= range->high)
    return "no difference shown between " + two + figure;
  const bool is_better = range->low > 0;
  return (is_better ? b : a).name + " better than " + (is_better ? a : b).name +
         figure;
}

std::string difference_table(const RecipeComparison& found,
                             const std::string& seeds, bool of_recipes) {
  HtmlTable table(
      "Difference of the AUROCs on " + std::to_string(found.images) +
          " images that all have scored, mean of " + seeds +
          (of_recipes ? " (95 % for a new training and new patients)"
                      : " (95 % for new patients, of these networks alone)"),
      {"finding", "#positives", "#difference"});
  const auto cell = [&](const RecipeDifference& f) {
    return with_interval(f.value, of_recipes ? f.of_recipes : f.of_networks);
  };
  table.add({"mean", "", cell(found.mean)});
  for (const auto& f : found.findings)
    table.add({shown(f.finding),
               std::to_string(f.positives) +
                   (f.positives < kFewPositives ? " (rough)" : ""),
               cell(f)});
  return table.html();
}

// Without origin and hint.
std::string reason_of(const Error& error) {
  const std::string text = error.what();
  const size_t begin = text.starts_with('[') ? text.find("] ") + 2 : 0;
  return text.substr(begin, text.find(". Hint: ") - begin);
}

// b minus a, resampled together. Adds to `sentences` where both have several
// seeds, or cannot be compared.
std::string difference_of(const Setting& a, const Setting& b,
                          PredictionsOfRuns& tables, size_t comparisons,
                          std::vector<std::string>& sentences) {
  const Pairs pairs = pairs_of(a, b);
  const std::string heading =
      "<h3>" + html_text(b.name + " minus " + a.name) + "</h3>\n";
  const auto refused = [&](const std::string& why) {
    sentences.push_back(b.name + " and " + a.name +
                        " are not compared: " + why);
    return heading + html_paragraph("Not compared: " + why + ".");
  };
  std::vector<const Predictions*> first, second;
  for (const auto& [runs, predictions] :
       {std::pair(&pairs.a, &first), std::pair(&pairs.b, &second)})
    for (const auto* run : *runs) {
      if (run->scored_set().empty() ||
          run->scored_set() != pairs.a.front()->scored_set())
        return refused(
            "they were not scored on the same images with one eval.by, so only "
            "their own intervals can be looked at");
      const auto& table = tables.of(*run);
      if (!table.problem.empty()) return refused(table.problem);
      predictions->push_back(&table.predictions);
    }
  constexpr size_t kResamples = 2000;  // the variance is then within 3 %
  try {
    const RecipeComparison found =
        compare_recipes(first, second, {.resamples = kResamples}, comparisons);
    if (first.size() > 1 && found.mean.value)
      sentences.push_back(sentence_of(a, b, found.mean, pairs, comparisons));
    return heading +
           difference_table(found, pairs.seeds(), first.size() >= kLeastSeeds);
  } catch (const DataError& e) {  // other labels
    return refused(reason_of(e));
  }
}

bool has_seeds_enough(const Setting& setting) {
  return setting.runs.size() >= kLeastSeeds;
}

// Of settings that may be called better than one another.
size_t comparisons_of(const std::vector<Setting>& settings) {
  const auto count =
      static_cast<size_t>(std::ranges::count_if(settings, has_seeds_enough));
  return count < 2 ? 1 : count * (count - 1) / 2;
}

}  // namespace

std::string setting_differences(const std::vector<Setting>& settings,
                                std::vector<std::string>& sentences) {
  if (settings.size() < 2)
    return html_paragraph(
        "The runs differ in seed or fold alone: there are no two settings to "
        "compare.");
  PredictionsOfRuns tables;
  std::string html;
  std::vector<std::string> single;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (settings[i].runs.size() == 1) single.push_back(settings[i].name);
    for (size_t j = i + 1; j < settings.size(); ++j)
      if (i == 0 ||
          (has_seeds_enough(settings[i]) && has_seeds_enough(settings[j])))
        html += difference_of(settings[i], settings[j], tables,
                              comparisons_of(settings), sentences);
  }
  if (!single.empty())
    sentences.push_back(
        "one seed tells nothing of another training, so no difference is "
        "shown of " +
        listed(single) + " (three or more seeds are needed)");
  return html + html_paragraph(
                    "Each interval of these tables is of its difference alone: "
                    "of twenty, one leaves out 0 by chance. The sentences "
                    "above hold together.");
}

}  // namespace chexnet
