#include "chexnet/report/tensorboard_scores.hpp"

#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {

void show_distributions(TensorBoardLog& log, const std::string& event,
                        std::int64_t step, const Predictions& predictions) {
  const ScoredColumns scored = scored_columns(predictions, {});
  if (!scored.probabilities) return;
  for (const auto& column : scored.columns) {
    std::vector<double> positive, negative;
    for (std::size_t i = 0; i < column.scores.size(); ++i) {
      if (column.labels[i] == 1) positive.push_back(column.scores[i]);
      if (column.labels[i] == 0) negative.push_back(column.scores[i]);
    }
    const std::string tag = event + "/" + column.finding;
    log.histogram(tag + "/positive", step, positive);
    log.histogram(tag + "/negative", step, negative);
  }
}

void show_figures(TensorBoardLog& log, std::int64_t step,
                  const SplitScores& result) {
  std::vector<std::pair<std::string, double>> scalars;
  const std::string place = "final/" + result.split + "/";
  const auto add = [&](const char* figure, const std::string& finding,
                       const std::optional<double>& value) {
    if (value) scalars.emplace_back(place + figure + "/" + finding, *value);
  };
  for (const auto& f : result.figures.findings) {
    add("average_precision", f.finding, f.average_precision.value);
    add("brier", f.finding, f.brier);
    add("calibration_error", f.finding, f.error_in_equal_masses);
    if (!f.auroc.interval) continue;
    add("auroc_low", f.finding, f.auroc.interval->interval.low);
    add("auroc_high", f.finding, f.auroc.interval->interval.high);
  }
  if (const auto& mean = result.figures.mean_auroc.interval) {
    scalars.emplace_back(place + "mean_auroc_low", mean->interval.low);
    scalars.emplace_back(place + "mean_auroc_high", mean->interval.high);
  }
  log.scalars(step, scalars);
}

}  // namespace chexnet
