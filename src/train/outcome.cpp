#include "chexnet/train/outcome.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {

void say_outcome(const TrainOutcome& outcome, bool verbose) {
  if (outcome.was_complete)
    log_info("run " + outcome.run_folder + " is complete at step " +
             std::to_string(outcome.step) + ": nothing is left to do. " +
             (outcome.lost.empty()
                  ? std::string("A larger train.epochs or train.max_steps goes "
                                "on with it; ")
                  : "It " + outcome.lost +
                        "; --set train.rungs=[] goes on with it; ") +
             "`evaluate` scores other splits");
  else if (outcome.train_s > 0)
    log_info("run folder " + outcome.run_folder + "  " +
             fixed(outcome.images_per_s, 1) + " images/s  peak " +
             (outcome.on_gpus ? "GPU memory" : "memory") + " of a rank " +
             readable_bytes(static_cast<double>(outcome.peak_bytes)) +
             "  training " + readable_s(outcome.train_s) + ", evaluation " +
             readable_s(outcome.evaluate_s));
  if (outcome.overlap) log_info(overlap_text(*outcome.overlap));
  const auto& results = outcome.results;
  if (results.empty()) return;
  const auto test = std::ranges::find(results, "test", &SplitScores::split);
  const SplitScores& shown = test == results.end() ? results.back() : *test;
  for (const auto& result : results) {
    if (&result == &shown) continue;
    log_info(verbose ? scores_text(result)
                     : "mean AUROC on the " + result.split + " split: " +
                           mean_auroc_text(result.figures.mean_auroc));
  }
  log_info(verbose ? scores_text(shown) : scores_summary(shown));
  log_info("report " + outcome.run_folder + "/report.html");
}

std::string outcome_json(const TrainOutcome& outcome) {
  // Work that this start did not do has no figure.
  const bool trained = outcome.train_s > 0;
  const auto figure = [&](auto value) {
    return trained ? nlohmann::json(value) : nlohmann::json(nullptr);
  };
  nlohmann::json json = {{"run_folder", outcome.run_folder},
                         {"step", outcome.step},
                         {"images_per_s", figure(outcome.images_per_s)},
                         {"peak_bytes", figure(outcome.peak_bytes)},
                         {"peak_bytes_of", outcome.on_gpus ? "gpu" : "host"},
                         {"train_s", figure(outcome.train_s)},
                         {"evaluate_s", figure(outcome.evaluate_s)},
                         {"complete", outcome.code == ExitCode::kDone}};
  if (outcome.overlap) json["overlap"] = overlap_json(*outcome.overlap);
  if (outcome.failed_commands)
    json["after_checkpoint_failures"] = *outcome.failed_commands;
  for (const auto& result : outcome.results)
    json["results"][result.split] = scores_json(result);
  return json_text(json);
}

}  // namespace chexnet
