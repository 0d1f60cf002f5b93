#include "chexnet/report/tensorboard_scores.hpp"

#include "chexnet/eval/scored_columns.hpp"
#include "run_examples.hpp"

namespace chexnet {

void show_distributions(TensorBoardLog& log, const std::string& event,
                        int64_t step, const Predictions& predictions) {
  const ScoredColumns scored = scored_columns(predictions, {});
  if (!scored.probabilities) return;
  for (const auto& column : scored.columns) {
    std::vector<double> positive, negative;
    for (size_t i = 0; i < column.scores.size(); ++i) {
      if (column.labels[i] == 1) positive.push_back(column.scores[i]);
      if (column.labels[i] == 0) negative.push_back(column.scores[i]);
    }
    const std::string tag = event + "/" + column.finding;
    log.histogram(tag + "/positive", step, positive);
    log.histogram(tag + "/negative", step, negative);
  }
}

void show_figures(TensorBoardLog& log, int64_t step,
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
  log.scalars(step, scalars);
}

void show_examples(TensorBoardLog& log, int64_t step,
                   const std::filesystem::path& run) {
  for (const auto& example : read_examples(run)) {
    // Width and height are the first fields of a PNG's head (RFC 2083).
    const auto pixels = [&](size_t at) {
      uint32_t value = 0;
      for (size_t i = 0; i < 4; ++i)
        value = value << 8U | static_cast<unsigned char>(example.png[at + i]);
      return static_cast<int>(value);
    };
    constexpr size_t kWidthAt = 16, kHeightAt = 20;
    log.image("examples/" + example.finding + "/" + example.kind, step,
              example.png, pixels(kWidthAt), pixels(kHeightAt));
  }
}

}  // namespace chexnet
