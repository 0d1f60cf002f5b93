#include "scoring_options.hpp"

#include <cmath>
#include <filesystem>
#include <iostream>

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/eval/figures_csv.hpp"
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
  auto* choose_on = command
                        .add_option("--choose-on", options.choose_on,
                                    "choose thresholds on this CSV of other "
                                    "images, e.g. RUN/predictions_val.csv")
                        ->check(in_file_system());
  command
      .add_option("--sensitivity", options.rules.sensitivity,
                  "with --choose-on: a threshold of at least this sensitivity "
                  "(default 0.9)")
      ->needs(choose_on)
      ->check(share);
  command
      .add_option("--specificity", options.rules.specificity,
                  "with --choose-on: a threshold of at least this specificity "
                  "(default 0.9)")
      ->needs(choose_on)
      ->check(share);
  command
      .add_option("--threshold", options.rules.threshold,
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
  command
      .add_option("--figures", options.figures,
                  "write all figures to this CSV, one on a line")
      ->check(in_file_system());
  command.add_flag("--json", options.json,
                   "one JSON object on stdout (docs/json.md)");
}

void refuse_to_replace(const std::string& output,
                       const std::vector<std::string>& inputs) {
  const auto place = [](const std::string& path) {
    return std::filesystem::weakly_canonical(path);
  };
  if (output.empty()) return;
  for (const auto& input : inputs)
    if (!input.empty() && place(input) == place(output))
      throw ConfigError("[evaluate] " + output +
                        " is read by this command and would be replaced. "
                        "Hint: another name for --out and --figures");
}

OtherTables read_other_tables(const ScoringOptions& options,
                              const Manifest* manifest) {
  OtherTables others;
  if (!options.choose_on.empty())
    others.choose_on = read_predictions(options.choose_on, nullptr);
  if (!options.against.empty())
    others.against = read_predictions(options.against, manifest);
  return others;
}

void print_scores(SplitScores result, const Predictions& predictions,
                  const std::vector<std::string>& findings,
                  const OtherTables& others, const ScoringOptions& options,
                  int threads) {
  const BootstrapOptions draws{.threads = threads};
  result.figures = figures_of(predictions, findings, draws);
  result.points = operating_points(
      predictions, findings, others.choose_on ? &*others.choose_on : nullptr,
      options.rules);
  result.prevalence = options.prevalence;
  result.against = options.against;
  if (others.against)
    result.comparison = compare(predictions, *others.against, findings, draws);
  if (!options.figures.empty())
    write_atomically(options.figures, figures_csv(result.figures, result.points,
                                                  result.prevalence));
  std::cout << (options.json ? scores_json(result) : scores_text(result))
            << std::endl;
}

}  // namespace chexnet
