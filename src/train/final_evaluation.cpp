// `best` is a link that rank 0 moves. Rank 0 alone looks whether it is there
// and reads it; the others get the weights by broadcast. On a shared file
// system they might still see the old link.
#include "final_evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/report/tensorboard_scores.hpp"
#include "chexnet/train/model_metadata.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/predict.hpp"
#include "example_maps.hpp"

namespace chexnet {
namespace {

// True when there are such weights; then every rank's network has them.
bool take_best_weights(const TrainingLoop::Parts& parts,
                       const TrainState& state) {
  Communicator& comm = parts.comm;
  const auto best = parts.folder.path() / "checkpoints" / "best";
  std::error_code error;
  const bool there =
      state.best_step >= 0 && std::filesystem::exists(best, error);
  if (!any_rank(comm, comm.rank() == 0 && there)) return false;
  if (comm.rank() == 0)
    read_network(best / "model.safetensors", parts.config,
                 parts.dataset.manifest.findings, parts.network.parameters());
  broadcast_from_rank_0(comm, parts.network.parameters(), nullptr);
  return true;
}

void write_scores(const TrainingLoop::Parts& parts, int64_t step,
                  const FinalScores& finals, const Predictions& predictions,
                  SplitScores& result) {
  const std::string& split = result.split;
  const Scores& scores = result.scores;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string table = predictions_csv(predictions);
  write_atomically(parts.folder.path() / ("predictions_" + split + ".csv"),
                   table);
  result.predictions_sha256 = sha256_hex(table);
  std::map<std::string, double> by_finding;
  for (size_t k = 0; k < scores.findings.size(); ++k)
    by_finding[scores.findings[k]] = scores.auroc[k].value_or(nan);
  MetricFields fields = {
      {"split", split},
      {"images", static_cast<int64_t>(scores.images)},
      {"damaged", static_cast<int64_t>(scores.damaged)},
      {"missing", static_cast<int64_t>(result.missing)},
      {"weights", std::string(finals.best ? "best" : "last")},
      {"best_step", finals.step},
      {"loss", scores.loss.value_or(nan)}};
  add_mean_auroc(result.figures.mean_auroc, fields);
  fields.emplace_back("auroc", by_finding);
  parts.metrics->write("final", step, fields);
}

// Thresholds and calibration of the scored weights, as they lie with them; on
// rank 0.
std::optional<DecisionRules> own_rules(const TrainingLoop::Parts& parts,
                                       bool best) {
  const auto file = parts.folder.path() / "checkpoints" /
                    (best ? "best" : "last") / "model.safetensors";
  return read_model_metadata(file).rules;
}

// By sex, view and age, as far as the table knows them.
std::vector<SubgroupTable> known_subgroups(
    const Predictions& predictions, const std::vector<std::string>& findings,
    const Manifest& manifest, const BootstrapOptions& draws) {
  const auto known = [](const auto& values, const auto& is_known) {
    return std::ranges::any_of(values, is_known);
  };
  const auto has_text = [](const std::string& text) { return !text.empty(); };
  std::vector<std::string> columns;
  if (known(manifest.sexes, has_text)) columns.emplace_back("sex");
  // Several views make the score of a study.
  if (predictions.by == ScoredBy::kImage && known(manifest.views, has_text))
    columns.emplace_back("view");
  if (known(manifest.ages, [](float years) { return !std::isnan(years); }))
    columns.emplace_back("age");
  std::vector<SubgroupTable> tables;
  for (const auto& column : columns)
    tables.push_back(subgroup_table(predictions, findings, manifest, column,
                                    group_values(manifest, column, kAgeBands),
                                    draws));
  return tables;
}

// All figures of a split; rank 0.
void add_all_figures(const TrainingLoop::Parts& parts,
                     const Predictions& predictions,
                     const std::optional<DecisionRules>& rules,
                     SplitScores& result) {
  const auto& findings = parts.config.eval.findings;
  const BootstrapOptions draws{.threads = parts.device.cores};
  const DecisionRules* own =
      rules && result.split != choice_name(SplitName::kVal) ? &*rules : nullptr;
  add_figures(predictions, findings, own, draws, result);
  if (own == nullptr) return;
  result.subgroups =
      known_subgroups(predictions, findings, parts.dataset.manifest, draws);
}

}  // namespace

std::optional<FinalScores> final_evaluation(const TrainingLoop::Parts& parts,
                                            const TrainState& state) {
  const Profiler::Span span(&parts.profiler, Phase::kEvaluate);
  FinalScores finals;
  finals.best = take_best_weights(parts, state);
  finals.step = finals.best ? state.best_step : state.step;
  const bool first_rank = parts.metrics != nullptr;
  std::optional<DecisionRules> rules;
  if (first_rank) rules = own_rules(parts, finals.best);
  for (const SplitName asked : parts.config.eval.splits) {
    const std::string name = choice_name(asked);
    const Split& split = parts.dataset.splits.named(name);
    if (split.rows.empty()) continue;
    // Unweighted, as `evaluate` has it: losses of runs with other weights
    // compare.
    const LossWeights weights = no_loss_weights(parts.dataset.manifest);
    const RunContext run{parts.config,  parts.comm,    parts.device,
                         parts.dataset, parts.network, weights};
    const auto prediction =
        predict_split(run, split, [&] { return parts.stop.asked(0); });
    if (!prediction) return std::nullopt;
    if (first_rank) parts.folder.require_lock();
    const Predictions predictions = scored_units(
        prediction->predictions, parts.dataset.manifest, parts.config.eval);
    Scores scores = score(predictions, parts.config.eval.findings);
    scores.loss = prediction->loss;
    SplitScores& result = finals.splits.emplace_back(
        SplitScores{name, std::move(scores), split.sha256});
    result.missing = parts.dataset.missing_of(name);
    // Thresholds of studies call no image positive.
    if (asked == SplitName::kTest && parts.config.eval.by == ScoredBy::kImage &&
        !write_examples(parts, split, prediction->predictions,
                        rules.value_or(DecisionRules{})))
      return std::nullopt;
    if (!first_rank) continue;
    add_all_figures(parts, predictions, rules, result);
    write_scores(parts, state.step, finals, predictions, result);
    TensorBoardLog& tensorboard = parts.metrics->tensorboard();
    show_distributions(tensorboard, "final_scores/" + name, state.step,
                       predictions);
    show_figures(tensorboard, state.step, result);
  }
  return finals;
}

}  // namespace chexnet
