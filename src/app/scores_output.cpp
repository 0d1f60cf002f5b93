// AUROC is "not defined" where a finding has only positives or only negatives.
// The JSON says null there, and not 0 or NaN: a mean over findings that took it
// for a number would be wrong.
#include "chexnet/app/scores_output.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/json_text.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {

namespace {

// "the test split", but "valid.csv"
std::string place_of(const std::string& split) {
  const bool is_split = split == "train" || split == "val" || split == "test";
  return is_split ? "the " + split + " split" : split;
}

}  // namespace

std::string scores_text(const SplitScores& result) {
  Rows rows;
  const Scores& s = result.scores;
  for (std::size_t k = 0; k < s.findings.size(); ++k)
    rows.emplace_back(s.findings[k],
                      (s.auroc[k] ? fixed(*s.auroc[k], 4) : "not defined") +
                          std::string("  (") + std::to_string(s.positives[k]) +
                          " positives)");
  rows.emplace_back("mean AUROC",
                    s.mean_auroc ? fixed(*s.mean_auroc, 4) : "not defined");
  std::string any_finding = "not defined";
  if (s.any_finding_auroc_mean_logit)
    any_finding = fixed(*s.any_finding_auroc_mean_logit, 4);
  else if (!s.probabilities)
    any_finding += ": scores outside 0..1 are no probabilities";
  rows.emplace_back("any finding by mean logit", any_finding);
  return "AUROC on " + place_of(result.split) + ", " + images_text(s) +
         " (research use, not a medical device)\n" + aligned(rows);
}

std::string scores_json(const SplitScores& result) {
  const auto value = [](const std::optional<double>& v) {
    return v ? nlohmann::json(*v) : nlohmann::json(nullptr);
  };
  nlohmann::ordered_json json;
  json["images"] = result.scores.images;
  json["damaged"] = result.scores.damaged;
  json["not_scored"] = result.scores.not_scored;
  for (std::size_t k = 0; k < result.scores.findings.size(); ++k)
    json["auroc"][result.scores.findings[k]] = value(result.scores.auroc[k]);
  json["mean_auroc"] = value(result.scores.mean_auroc);
  json["any_finding_auroc_mean_logit"] =
      value(result.scores.any_finding_auroc_mean_logit);
  json["loss"] = value(result.scores.loss);
  json["split"] = {
      {"name", result.split},
      {"sha256", result.sha256.empty() ? nlohmann::json(nullptr)
                                       : nlohmann::json(result.sha256)}};
  return json_text(json);
}

}  // namespace chexnet
