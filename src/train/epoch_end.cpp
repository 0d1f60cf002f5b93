// TrainingLoop's ends of epochs:
//
//   checkpoint -> evaluation of its weights -> thresholds into its model file
//   -> scores into its state
//
// Every rank evaluates a part and gets the whole result, so plateau and early
// stop are the same on all of them; only files are rank 0's.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/report/scores_output.hpp"
#include "chexnet/report/tensorboard_scores.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/run/recipe.hpp"
#include "chexnet/train/run/rungs.hpp"
#include "rank_agreement.hpp"
#include "training_loop.hpp"

namespace chexnet {
namespace {

std::string scientific(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  return text.data();
}

std::string figure(const std::optional<double>& value) {
  return value ? fixed(*value, 4) : "not defined";
}

// A step may jump over the wanted epoch.
bool passes_multiple(int64_t before, int64_t now, int64_t every) {
  return every > 0 && now / every > before / every;
}

}  // namespace

bool TrainingLoop::end_of_epoch(int64_t epoch_before) {
  const Config& config = parts_.config;
  if (parts_.metrics != nullptr)
    parts_.metrics->write("epoch", state_.step, {{"epoch", state_.epoch}});
  const bool last = state_.step == total_steps_;
  const bool evaluate_now = last || passes_multiple(epoch_before, state_.epoch,
                                                    config.eval.every_epochs);
  state_.evaluation_due =
      evaluate_now && !parts_.dataset.splits.val.rows.empty();
  checkpoint();
  return !state_.evaluation_due || evaluate();
}

bool TrainingLoop::evaluate() {
  const Profiler::Span span(&parts_.profiler, Phase::kEvaluate);
  log_.clear();
  const double start = now_s();
  // One that cannot be finished is not begun.
  double ahead_s = longest_evaluation_s_;
  const auto stop = [&] {
    return parts_.stop.asked(std::exchange(ahead_s, 0));
  };
  const AverageInUse averaged(step_.average());
  const auto result = predict_split(parts_, parts_.dataset.splits.val, stop);
  if (!result) return false;
  longest_evaluation_s_ = std::max(longest_evaluation_s_, now_s() - start);
  score_weights({scored_units(result->predictions, parts_.dataset.manifest,
                              parts_.config.eval),
                 result->loss});
  return true;
}

void TrainingLoop::score_weights(const SplitPrediction& result) {
  const Config& config = parts_.config;
  const Scores scores = score(result.predictions, config.eval.findings);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool by_loss = config.checkpoint.best == BestBy::kLoss;
  const double value = by_loss ? -result.loss : scores.mean_auroc.value_or(nan);
  const double before = by_loss ? -state_.best : state_.best;
  const bool is_best =
      !std::isnan(value) && (std::isnan(before) || value > before);
  if (is_best) {
    state_.best = by_loss ? -value : value;
    state_.best_step = state_.step;
    state_.best_epoch = state_.epoch;
  }
  // A score that is not defined says nothing about progress.
  if (!std::isnan(value))
    state_.epochs_without_best = state_.epoch - state_.best_epoch;
  const bool observes = plateau_observes(config.train, parts_.decisions.batch,
                                         state_.position, images_);
  const bool lowered =
      observes && state_.plateau.observe(result.loss, config.train);
  state_.evaluation_due = false;
  go_through_rung();
  if (parts_.comm.rank() != 0) return;

  // As many resamples as at the end, so both give one interval.
  const MeanFigure mean = figures_of(result.predictions, config.eval.findings,
                                     {.threads = parts_.device.cores})
                              .mean_auroc;
  std::map<std::string, double> by_finding;
  for (size_t k = 0; k < scores.findings.size(); ++k)
    by_finding[scores.findings[k]] = scores.auroc[k].value_or(nan);
  MetricFields fields = {{"epoch", state_.epoch},
                         {"damaged", static_cast<int64_t>(scores.damaged)},
                         {"loss", result.loss}};
  add_mean_auroc(mean, fields);
  fields.insert(fields.end(),
                {{"any_finding_auroc_mean_logit",
                  scores.any_finding_auroc_mean_logit.value_or(nan)},
                 {"best", std::string(is_best ? "yes" : "no")},
                 {"validation_sha256", state_.validation_sha256},
                 {"auroc", by_finding}});
  parts_.metrics->write("val", state_.step, fields);
  show_distributions(parts_.metrics->tensorboard(), "val_scores", state_.step,
                     result.predictions);
  keep_decision_rules(result.predictions);
  // First the state, then the link: a resume sets the link by the state. Until
  // then the evaluation is due, so a resume repeats all of it.
  parts_.metrics->sync();
  parts_.folder.store().replace_state(state_.step, state_.to_json());
  if (is_best) parts_.folder.store().mark_best(state_.step);
  log_info("step " + std::to_string(state_.step) + "  validation loss " +
           (std::isnan(result.loss) ? figure({}) : fixed(result.loss, 4)) +
           "  mean AUROC " + mean_auroc_text(mean) +
           (scores.damaged > 0 ? "  of " + images_text(scores) : "") +
           (is_best ? "  (best)" : "") +
           (lowered ? "  learning rate x " + scientific(state_.plateau.factor)
                    : ""));
}

// Before the state says that the evaluation is done: a run that is killed in
// between evaluates again and finds its score there.
void TrainingLoop::go_through_rung() {
  int64_t due = 0;
  for (const double epochs : parts_.config.train.rungs)
    if (state_.epoch >= static_cast<int64_t>(epochs))
      due = static_cast<int64_t>(epochs);
  // Without a score there is nothing to compare.
  if (due <= state_.rung || state_.step == total_steps_ ||
      std::isnan(state_.best))
    return;
  state_.rung = due;
  std::string words;
  if (parts_.comm.rank() == 0) {
    const auto folder = (std::filesystem::absolute(parts_.folder.path()) / "")
                            .lexically_normal()
                            .parent_path();
    const bool by_loss = parts_.config.checkpoint.best == BestBy::kLoss;
    const std::string measure =
        by_loss ? " by " + loss_text(parts_.config.train) : "";
    const RungPlace place =
        enter_rung(folder.parent_path(), due,
                   {folder.filename(), by_loss ? -state_.best : state_.best,
                    state_.validation_sha256 + measure});
    words = (place.goes_on() ? "goes on after " : "ends after ") +
            counted(state_.epoch, "epoch") + ": " + place.text();
    log_.clear();
    log_info("sweep: " + words);
    parts_.metrics->write("rung", state_.step,
                          {{"epoch", due}, {"sentence", words}});
    if (place.goes_on()) words.clear();
  }
  state_.lost = broadcast_text(parts_.comm, words);
}

// Thresholds and calibration, so that whoever gets the model can say what a
// score means. Of all findings: eval.findings may be others later.
void TrainingLoop::keep_decision_rules(const Predictions& validation) {
  const EvalConfig& config = parts_.config.eval;
  const Dataset& dataset = parts_.dataset;
  DecisionRules rules =
      choose_rules(validation, {}, {config.sensitivity, config.specificity});
  rules.scored_with = scored_with(config);
  rules.chosen_on = dataset.splits.val.sha256;
  rules.manifest_sha256 = dataset.manifest.sha256;
  const std::string name = "model.safetensors";
  auto& store = parts_.folder.store();
  store.replace_file(state_.step, name, [&](const std::filesystem::path& to) {
    write_decision_rules(to.parent_path() / name, to, rules);
  });
}

// Rank 0 writes, so it checks; the others get its result and end with the same
// text.
void TrainingLoop::check_finite_state() {
  std::string found;
  if (parts_.comm.rank() == 0)
    found = not_finite_state(parts_.network.parameters(), step_.optimizer(),
                             &step_.average());
  found = broadcast_text(parts_.comm, found);
  if (found.empty()) return;
  throw NumericError(
      "[train] after step {}: {} is not finite, so no checkpoint is written. "
      "Hint: lower train.lr, or set train.clip_norm; the last checkpoint is "
      "untouched",
      state_.step, found);
}

void TrainingLoop::checkpoint() {
  const Profiler::Span span(&parts_.profiler, Phase::kCheckpoint);
  const double start = now_s();
  finish_steps();
  state_.loss_scale = step_.loss_scale();
  state_.unlogged = log_.unlogged();
  const std::optional<uint64_t> agreed = verify_ranks();
  check_finite_state();
  // No rank is in a step that the checkpoint does not have.
  parts_.comm.barrier();
  if (parts_.comm.rank() == 0) {
    parts_.folder.require_lock();
    parts_.metrics->sync();
    parts_.folder.store().save(
        state_.step, state_.to_json(),
        [&](const std::filesystem::path& folder) {
          write_network(folder, parts_.network.parameters(), step_.optimizer(),
                        state_.step, description_, &step_.average());
          if (agreed)
            check_unchanged(*agreed, own_sum(),
                            parts_.device.placements.front(), state_.step);
        });
    parts_.metrics->write("checkpoint", state_.step, {{"epoch", state_.epoch}});
    parts_.folder.checkpoint_written();
  }
  parts_.comm.barrier();
  longest_checkpoint_s_ = std::max(longest_checkpoint_s_, now_s() - start);
}

}  // namespace chexnet
