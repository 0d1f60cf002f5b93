#include "scoring_options.hpp"

#include <iostream>

#include "chexnet/app/run_options.hpp"
#include "chexnet/app/scores_output.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/eval/figures_csv.hpp"

namespace chexnet {

void add_scoring_options(CLI::App& command, ScoringOptions& options) {
  const auto share = CLI::Range(0.0, 1.0);
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
  command.add_option("--threshold", options.rules.threshold,
                     "figures of calling positive what scores at least this");
  command
      .add_option("--prevalence", options.prevalence,
                  "PPV and NPV also where this share of images is positive")
      ->check(share);
  command
      .add_option("--figures", options.figures,
                  "write all figures to this CSV, one on a line")
      ->check(in_file_system());
  command.add_flag("--json", options.json,
                   "one JSON object on stdout (docs/json.md)");
}

std::optional<Predictions> read_choose_on(const ScoringOptions& options) {
  if (options.choose_on.empty()) return std::nullopt;
  return read_predictions(options.choose_on, nullptr);
}

void print_scores(SplitScores result, const Predictions& predictions,
                  const std::vector<std::string>& findings,
                  const std::optional<Predictions>& choose_on,
                  const ScoringOptions& options, int threads) {
  result.figures = figures_of(predictions, findings, {.threads = threads});
  result.points = operating_points(
      predictions, findings, choose_on ? &*choose_on : nullptr, options.rules);
  result.prevalence = options.prevalence;
  if (!options.figures.empty())
    write_atomically(options.figures, figures_csv(result.figures, result.points,
                                                  result.prevalence));
  std::cout << (options.json ? scores_json(result) : scores_text(result))
            << std::endl;
}

}  // namespace chexnet
