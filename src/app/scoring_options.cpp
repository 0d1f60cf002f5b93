#include "scoring_options.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/eval/figures_csv.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/report/scores_output.hpp"

namespace chexnet {

void add_scoring_options(CLI::App& command, ScoringOptions& options) {
  const CLI::Validator share(
      [](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) &&
                          value >= 0 && value <= 1;  // not NaN
        return fits ? std::string() : text + " is not in 0 - 1";
      },
      "FLOAT in [0 - 1]");
  const CLI::Validator finite(
      [](const std::string& text) {
        double value = 0;
        const bool fits =
            CLI::detail::lexical_cast(text, value) && std::isfinite(value);
        return fits ? std::string() : text + " is not a finite number";
      },
      "FLOAT");
  command
      .add_option("--choose-on", options.choose_on,
                  "choose thresholds on this CSV of other images, e.g. "
                  "RUN/predictions_val.csv (Youden's, and of eval.sensitivity "
                  "and eval.specificity); else they are the model's own")
      ->check(in_file_system());
  command
      .add_option("--threshold", options.threshold,
                  "figures of calling positive what scores at least this")
      ->check(finite);
  command
      .add_option("--prevalence", options.prevalence,
                  "PPV and NPV also where this share of images is positive")
      ->check(share);
  command
      .add_option("--against", options.against,
                  "compare with another network's CSV of the same images")
      ->check(in_file_system());
  add_repeated_option(command, "--by", options.by,
                      "figures for parts of the images: sex, view, age (in "
                      "bands, age:18,40,65), or any column of the table");
  command
      .add_option("--resamples", options.resamples,
                  "of the bootstrap (default 10000)")
      ->check(CLI::Range(1, 1000000));
  add_seed_option(command, "--seed", options.seed,
                  "of the bootstrap (default 0)");
  command
      .add_option("--figures", options.figures,
                  "write all figures to this CSV, one on a line")
      ->check(in_known_store());
  command.add_flag("--json", options.json,
                   "one JSON object on stdout (docs/json.md)");
}

OtherTables read_other_tables(const ScoringOptions& options,
                              const Manifest* manifest) {
  OtherTables others;
  // The table's labels come first, as the manifest may be of other images.
  if (!options.choose_on.empty())
    others.choose_on = read_predictions(
        options.choose_on, has_labels(options.choose_on) ? nullptr : manifest);
  if (!options.against.empty())
    others.against = read_predictions(options.against, manifest);
  return others;
}

void score_units(OtherTables& others, const Manifest& manifest,
                 const EvalConfig& config) {
  for (auto* table : {&others.choose_on, &others.against})
    if (*table) *table = scored_units(std::move(**table), manifest, config);
}

namespace {

// "age:18,40,65" -> 18, 40, 65: years that bands begin with.
std::vector<int> bands_of(const std::string& by) {
  const auto refuse = [&by](const std::string& what) {
    throw ConfigError("[evaluate] --by {}: {}. Hint: age:18,40,65", by, what);
  };
  constexpr int kOldest = 150;
  std::vector<int> bands;
  for (const auto& text :
       CLI::detail::split(by.substr(by.find(':') + 1), ',')) {
    int years = 0;
    if (!CLI::detail::lexical_cast(text, years) || years < 1 || years > kOldest)
      refuse("'" + text + "' is no number of years from 1 to 150");
    bands.push_back(years);
  }
  if (std::ranges::adjacent_find(bands, std::ranges::greater_equal()) !=
      bands.end())
    refuse("the years do not ascend");
  return bands;
}

}  // namespace

Groups read_groups(const ScoringOptions& options, const Manifest* manifest,
                   ScoredBy by_unit) {
  if (options.by.empty()) return {};
  if (manifest == nullptr)
    throw ConfigError(
        "[evaluate] --by: a table of predictions does not say what its images "
        "are of. Hint: --manifest TABLE");
  Groups groups;
  for (const auto& by : options.by) {
    const bool has_bands = by.starts_with("age:");
    const std::string column = has_bands ? "age" : by;
    if (std::ranges::find(groups, column, &Grouping::column) != groups.end())
      throw ConfigError("[evaluate] --by {}: given twice. Hint: once", column);
    if (by_unit != ScoredBy::kImage && lowered(column) == "view")
      throw ConfigError(
          "[evaluate] --by {}: a {} may have several. Hint: --set "
          "eval.by=image",
          column, choice_name(by_unit));
    groups.push_back(
        {column, group_values(*manifest, column,
                              has_bands ? bands_of(by) : kAgeBands)});
  }
  return groups;
}

namespace {

// Bootstraps with a line that shows how far they are.
class ShownDraws {
 public:
  ShownDraws(const ScoringOptions& options, int threads)
      : options_{.resamples = options.resamples,
                 .seed = options.seed,
                 .threads = threads} {}
  ~ShownDraws() { progress_.clear(); }
  ShownDraws(const ShownDraws&) = delete;
  ShownDraws& operator=(const ShownDraws&) = delete;

  BootstrapOptions of(const std::string& what) {
    BootstrapOptions options = options_;
    options.progress = [this, what, start = now_s()](double done) {
      if (now_s() - start < kSilent_s) return;
      progress_.show("resampling, " + what + ": " +
                     percent_and_time_left(done, now_s() - start));
    };
    return options;
  }

 private:
  static constexpr double kSilent_s = 2;
  BootstrapOptions options_;
  Progress progress_{true};
};

std::vector<SubgroupTable> subgroups(const Scored& scored, ShownDraws& draws) {
  std::vector<SubgroupTable> tables;
  for (const auto& [column, values] : scored.groups)
    tables.push_back(subgroup_table(scored.predictions, scored.findings,
                                    *scored.manifest, column, values,
                                    draws.of("by " + column)));
  return tables;
}

}  // namespace

void print_scores(SplitScores result, const Scored& scored,
                  const ScoringOptions& options, int threads,
                  double timeout_s) {
  const auto& [predictions, config, findings, others, own_rules, manifest,
               groups] = scored;
  std::optional<DecisionRules> chosen;
  if (others.choose_on) {
    if (others.choose_on->by != predictions.by)
      throw ConfigError(
          "[evaluate] --choose-on {}: has a row for each {}, and what is "
          "scored for each {}. Hint: --set eval.by={}",
          options.choose_on, choice_name(others.choose_on->by),
          choice_name(predictions.by), choice_name(others.choose_on->by));
    refuse_common_images(predictions, *others.choose_on);
    chosen = choose_rules(*others.choose_on, {},
                          {config.sensitivity, config.specificity});
  }
  const DecisionRules* rules = chosen ? &*chosen : own_rules;
  {
    ShownDraws draws(options, threads);
    result.figures = figures_of(predictions, findings, draws.of("all images"));
    result.subgroups = subgroups(scored, draws);
    if (others.against)
      result.comparison = compare(predictions, *others.against, findings,
                                  draws.of("the difference"));
  }
  result.points =
      operating_points(predictions, findings, rules, options.threshold);
  result.reliability = reliability_of(predictions, findings, rules);
  if (rules != nullptr)
    result.rules_from = chosen ? options.choose_on : "the model";
  result.prevalence = options.prevalence;
  result.against = options.against;
  if (!options.figures.empty())
    write_in_time(
        timeout_s, options.figures,
        figures_csv({result.figures, result.points, result.prevalence,
                     result.reliability, result.subgroups,
                     result.comparison ? &*result.comparison : nullptr}),
        "--figures");
  std::cout << (options.json ? json_text(scores_json(result))
                             : scores_text(result))
            << std::endl;
}

}  // namespace chexnet
