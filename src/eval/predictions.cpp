// Findings are scored one by one over the images that have a score.
#include "chexnet/eval/predictions.hpp"

#include <algorithm>
#include <cmath>

#include "any_finding.hpp"
#include "auroc.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
Scores score(const Predictions& predictions,
             const std::vector<std::string>& wanted) {
  const ScoredColumns scored = scored_columns(predictions, wanted);
  Scores scores;
  scores.by = predictions.by;
  scores.images = scored.rows.size();
  scores.not_scored =
      static_cast<size_t>(std::ranges::count(predictions.reasons, kNotScored));
  scores.damaged =
      predictions.images.size() - scores.images - scores.not_scored;
  scores.probabilities = scored.probabilities;
  std::vector<size_t> columns;
  for (const auto& column : scored.columns) {
    scores.findings.push_back(column.finding);
    scores.auroc.push_back(auroc(column.scores, column.labels));
    scores.positives.push_back(column.positives);
    columns.push_back(column.index);
  }
  const auto in_mean =
      mean_columns(scored, patients_of(predictions, scored.rows)).columns;
  double sum = 0;
  for (const size_t k : in_mean) sum += *scores.auroc[k];
  if (!in_mean.empty())
    scores.mean_auroc = sum / static_cast<double>(in_mean.size());
  if (scores.probabilities) {
    const AnyFinding any = any_finding(predictions, columns);
    scores.any_finding_auroc_mean_logit = auroc(any.scores, any.labels);
  }
  return scores;
}

std::string images_text(const Scores& scores) {
  const auto images_of = [&scores](size_t count) {
    return counted(static_cast<int64_t>(count), choice_name(scores.by));
  };
  const size_t left_out = scores.damaged + scores.not_scored;
  if (left_out == 0) return images_of(scores.images);
  std::string text = std::to_string(scores.images) + " of " +
                     images_of(scores.images + left_out);
  if (scores.damaged > 0)
    text += ", " + std::to_string(scores.damaged) + " damaged";
  if (scores.not_scored > 0)
    text += ", " + std::to_string(scores.not_scored) + " not scored";
  return text;
}

std::vector<std::string> scored_findings(
    const std::vector<std::string>& asked,
    const std::vector<std::string>& known) {
  if (asked.empty()) return known;
  refuse_doubled(asked, "eval.findings");
  std::vector<std::string> scored;
  for (const auto& name : asked) {
    const auto found = find_finding(known, name);
    if (!found)
      throw ConfigError(
          "[config] eval.findings: no finding '{}'. Hint: nearest are {}", name,
          nearest_names(name, known));
    scored.push_back(known[*found]);
  }
  return scored;
}

std::string predictions_csv(const Predictions& predictions) {
  const size_t findings = predictions.findings.size();
  const bool has_spreads = !predictions.spreads.empty();
  std::string text = "image";
  const auto add_columns = [&](const std::string& kind) {
    for (const auto& finding : predictions.findings)
      text += "," + csv_field(kind + finding);
  };
  add_columns("label:");
  add_columns("prob:");
  if (has_spreads) add_columns("spread:");
  const bool of_images = predictions.by == ScoredBy::kImage;
  const std::string by =
      of_images ? "" : std::string(",") + choice_name(predictions.by);
  text += of_images ? ",reason\n" : ",reason,by\n";
  for (size_t i = 0; i < predictions.images.size(); ++i) {
    text += csv_field(predictions.images[i]);
    for (size_t k = 0; k < findings; ++k)
      text += "," + csv_number(predictions.labels[i * findings + k]);
    for (size_t k = 0; k < findings; ++k)
      text += "," + csv_number(predictions.probabilities[i * findings + k]);
    for (size_t k = 0; has_spreads && k < findings; ++k)
      text += "," + csv_number(predictions.spreads[i * findings + k]);
    text += "," +
            (predictions.scored(i) ? std::string()
                                   : csv_field(predictions.reasons[i])) +
            by + "\n";
  }
  return text;
}

}  // namespace chexnet
