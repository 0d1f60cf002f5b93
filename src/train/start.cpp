// Where a start gets what it begins with:
//
//                weights                   best, plateau, early stop
//   fresh        drawn, or model.weights   empty
//   resumed      the checkpoint's          the checkpoint's, where the
//                                          validation split is scored as it was
//                                          (validation_sha256); else empty
//
// Rank 0 reads; the others get all by broadcast, so that no rank can see
// another checkpoint.
#include "start.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/config/load.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/run/recipe.hpp"

namespace chexnet {
namespace {

std::string epochs_text(double epochs) {
  return fixed(epochs, epochs == std::floor(epochs) ? 0 : 2);
}

// Data may lie elsewhere now: check_same_data() has seen that they are the
// same. The order of sums, of which train.accumulate is a part, is compared
// separately.
void note_changed_keys(TrainState& state, const Config& before,
                       const Config& now) {
  for (const auto& option : config_options()) {
    if (option.effect != Effect::kOtherResults || option.is_path ||
        option.key == "train.accumulate")
      continue;
    const std::string was = option_text(option, before);
    const std::string is = option_text(option, now);
    if (was != is) state.changes.push_back({state.step, option.key, was, is});
  }
}

void warn_of_another_schedule(const Config& config, double before) {
  if (config.train.schedule != ScheduleKind::kCosine ||
      before == config.train.epochs)
    return;
  log_warning("[resume] train.epochs changed from " + epochs_text(before) +
              " to " + epochs_text(config.train.epochs) +
              " under train.schedule=cosine: the rate jumps to the curve of "
              "the new length, so this "
              "is no schedule that a run without the change can have");
}

char label_letter(float label) {
  if (std::isnan(label)) return '-';
  return label > 0.5f ? '1' : '0';
}

// Scores of other images, labels or findings cannot be compared.
void check_validation(TrainState& state, const std::string& now,
                      const Dataset& dataset) {
  if (state.validation_sha256 == now) return;
  log_warning(
      "[resume] the validation split is scored otherwise than the run did "
      "(images, labels, eval.findings, eval.crops or eval.by): best "
      "checkpoint, plateau "
      "and early stop start afresh");
  constexpr size_t kShort = 12;
  state.changes.push_back({state.step, "SHA-256 of the validation split",
                           state.validation_sha256.substr(0, kShort),
                           now.substr(0, kShort)});
  state.forget_validation();
  state.validation_sha256 = now;
  if (dataset.splits.val.rows.empty()) state.evaluation_due = false;
}

// After a crash between the state of a checkpoint and its link, or the loss of
// the best one.
void follow_best(TrainState& state, CheckpointStore& store) {
  if (state.best_step < 0) return;
  if (store.has_whole(state.best_step)) {
    store.mark_best(state.best_step);
    return;
  }
  log_warning("[resume] the best checkpoint, of step " +
              std::to_string(state.best_step) +
              ", is gone or damaged: the best of what follows takes its place");
  state.changes.push_back({state.step, "best checkpoint",
                           "of step " + std::to_string(state.best_step),
                           "gone or damaged"});
  state.forget_validation();
}

}  // namespace

std::string validation_sha256(const Config& config, const Dataset& dataset) {
  const Manifest& m = dataset.manifest;
  const Split& val = dataset.splits.val;
  Sha256 sum;
  sum.update(val.sha256 + "\n");
  for (const auto& name : scored_findings(config.eval.findings, m.findings))
    sum.update(name + "\n");
  sum.update(scored_with(config.eval) + "\n");
  std::string cells(m.finding_count(), ' ');
  for (const auto row : val.rows) {
    const float* labels = m.scored_row(row);
    std::transform(labels, labels + cells.size(), cells.begin(), label_letter);
    sum.update(cells);
  }
  return sum.hex();
}

bool nothing_left(const TrainState& state, const Config& config, int64_t batch,
                  uint64_t images) {
  const int64_t patience = config.train.early_stop_epochs;
  const bool stopped_early =
      patience > 0 && state.epochs_without_best >= patience;
  return state.complete &&
         (stopped_early ||
          (!config.train.rungs.empty() && !state.lost.empty()) ||
          state.step >= total_steps(config.train, batch, images));
}

TrainState start_state(const Config& config, RunFolder& folder,
                       const Dataset& dataset, Communicator& comm) {
  TrainState state;
  state.validation_sha256 = validation_sha256(config, dataset);
  if (folder.checkpoint()) {
    const std::string place = folder.checkpoint()->string();
    std::string text;
    if (comm.rank() == 0) {
      check_same_data(*folder.checkpoint(), dataset);
      const std::string scored_now = state.validation_sha256;
      state = TrainState::from_json(
          CheckpointStore::read_state(*folder.checkpoint()), place);
      const Config before = load_config_text(place, state.config, {});
      // Of another run: config.yaml is beside it, and has no checksum.
      refuse_another_config(before, config, place, "checkpoint");
      note_changed_keys(state, before, config);
      warn_of_another_schedule(config, before.train.epochs);
      check_validation(state, scored_now, dataset);
      follow_best(state, folder.store());
      text = state.to_json();
    }
    state = TrainState::from_json(broadcast_text(comm, std::move(text)), place);
  }
  state.config = config_yaml(config);
  return state;
}

void set_summation_order(TrainState& state, const TrainingContext& run,
                         const SummationOrder& now) {
  const SummationOrder before = state.order;
  std::vector<std::string> changed;
  const auto compare = [&](const char* what, const std::string& was,
                           const std::string& is) {
    if (was == is) return;
    state.changes.push_back({state.step, what, was, is});
    changed.push_back(std::string(what) + " from " + was + " to " + is);
  };
  if (!before.versions.empty()) {
    compare("number of ranks", std::to_string(before.ranks),
            std::to_string(now.ranks));
    compare("train.accumulate", std::to_string(before.accumulate),
            std::to_string(now.accumulate));
    compare("threads per rank", std::to_string(before.threads),
            std::to_string(now.threads));
    compare("gradient compression", before.gradient_compression,
            now.gradient_compression);
    compare("libraries", before.versions, now.versions);
    const auto batchnorm =
        batchnorm_change(run.config, run.decisions.batch, before, now);
    if (batchnorm)
      state.changes.push_back({state.step, "images of a BatchNorm",
                               std::to_string(batchnorm->before),
                               std::to_string(batchnorm->now)});
    if (!changed.empty() && run.comm.rank() == 0)
      log_warning("[resume] changed: " + listed(changed) + ": " +
                  resume_effect_text(batchnorm));
  }
  state.order = now;
  // launch.bucket_mb: auto continues with what it chose.
  if (now.bucket_mb == 0) state.order.bucket_mb = before.bucket_mb;
}

}  // namespace chexnet
