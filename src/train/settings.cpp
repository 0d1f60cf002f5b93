// One row per line, for people who compare two runs: no row depends on the
// order of others, and what decides about a result (sums of files, seed,
// libraries) is always there.
#include "settings.hpp"

#include <torch/headeronly/version.h>

#include <cmath>

#include "chexnet/comm/transports.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/train/run/recipe.hpp"

namespace chexnet {
namespace {

std::string length_text(const TrainConfig& train) {
  return number_text(train.epochs) +
         (train.epochs == 1 ? " epoch" : " epochs") +
         (train.max_steps > 0 ? ", at most " + counted(train.max_steps, "step")
                              : "");
}

std::string regularization_text(const TrainConfig& train) {
  std::string text;
  const auto add = [&](const std::string& name, double value) {
    if (value > 0)
      text += (text.empty() ? "" : ", ") + name + " " + number_text(value);
  };
  add("weight decay", train.weight_decay);
  add("label smoothing", train.label_smoothing);
  add("mixup", train.mixup);
  add("average of weights (EMA)", train.ema);
  if (train.sampling != SamplingKind::kUniform)
    text += std::string(text.empty() ? "" : ", ") +
            choice_name(train.sampling) +
            " draws: scores are shifted away from prevalence";
  return text.empty() ? "none" : text;
}

std::string rate_factors_text(const TrainConfig& train) {
  std::string text;
  if (train.head_lr_factor != 1)
    text += ", head x " + number_text(train.head_lr_factor);
  if (train.layer_decay != 1)
    text += ", block4 x " + number_text(train.layer_decay) +
            " down to the stem x " + fixed(std::pow(train.layer_decay, 5), 4);
  return text;
}

std::string augmentation_text(const DataConfig& data) {
  std::string text = data.train_crop == TrainCrop::kResized
                         ? "random resized crop"
                         : choice_name(data.train_crop) + std::string(" crop");
  if (data.flip) text += ", mirrored at random";
  const auto add = [&](const std::string& name, double value) {
    if (value > 0) text += ", " + name + " " + number_text(value);
  };
  add("rotation (degrees)", data.rotate_deg);
  add("zoom", data.zoom);
  add("contrast", data.contrast);
  return text;
}

std::string split_text(const Dataset& dataset, const Split& split) {
  if (split.rows.empty()) return "none";
  const size_t missing = dataset.missing_of(split.name);
  return counted(std::ssize(split.rows), "image") + ", " +
         (missing > 0 ? std::to_string(missing) + " missing and left out, "
                      : "") +
         "sha256 " + split.sha256.substr(0, 12);
}

std::string weights_text(const TrainState& state, const RunFolder& folder) {
  if (!folder.checkpoint()) return state.origin;
  return state.origin + "; resumed from checkpoint " +
         folder.checkpoint()->filename().string();
}

std::string communication_text(const RunContext& run) {
  const std::string transports = transports_text(run.device.transports);
  return run.comm.description() +
         (transports.empty() ? "" : "; transports: " + transports);
}

}  // namespace

Rows settings_table(const TrainingContext& run, const TrainState& state,
                    const std::string& engine) {
  const Config& config = run.config;
  const DataConfig& data = config.data;
  const Manifest& manifest = run.dataset.manifest;
  const Splits& splits = run.dataset.splits;
  const std::string frozen = frozen_text(config.model);
  return {
      {"run folder", run.folder.path().string()},
      {"manifest",
       manifest.path + " (" + counted(std::ssize(manifest.images), "image") +
           ", " +
           (manifest.left_out.empty()
                ? ""
                : std::to_string(manifest.left_out.size()) + " left out, ") +
           "sha256 " + manifest.sha256.substr(0, 12) + ")"},
      {"train", split_text(run.dataset, splits.train)},
      {"val", split_text(run.dataset, splits.val)},
      {"test", split_text(run.dataset, splits.test)},
      {"patients in two splits", manifest.knows_patients
                                     ? std::to_string(splits.leaked_patients)
                                     : "unknown: no patient column"},
      {"findings", std::to_string(manifest.finding_count()) +
                       (config.eval.findings.empty()
                            ? ""
                            : ", scored: " + listed(config.eval.findings))},
      {"input", std::to_string(data.crop) + " px of " +
                    std::to_string(data.resize) + " px, resize " +
                    choice_name(data.resize_kind)},
      {"network", std::string(choice_name(config.model.arch)) + ", weights " +
                      weights_text(state, run.folder) +
                      (frozen.empty() ? "" : "; " + frozen)},
      {"precision", std::string(choice_name(run.network.options().precision)) +
                        (config.train.precision ? "" : " (auto)")},
      {"global batch", counted(run.decisions.batch, "image") + " on " +
                           counted(run.comm.size(), "rank")},
      {"a BatchNorm sees",
       batchnorm_text(config, run.decisions.batch, run.comm.size())},
      {"loss", loss_text(config.train) +
                   (manifest.sample_weights.empty()
                        ? ""
                        : "; rows weighed by column " + data.sample_weight)},
      {"optimizer", std::string(choice_name(config.train.optimizer)) +
                        ", learning rate " + number_text(config.train.lr) +
                        rate_factors_text(config.train) + ", schedule " +
                        choice_name(config.train.schedule) + ", " +
                        length_text(config.train)},
      {"regularization", regularization_text(config.train)},
      {"augmentation", augmentation_text(data)},
      {"device", run.device.description},
      {"computed by", engine + (run.network.options().recompute
                                    ? ", BatchNorm twice (model.memory)"
                                    : "")},
      {"communication", communication_text(run)},
      {"libraries", std::string("LibTorch ") + TORCH_VERSION},
      {"seed", std::to_string(config.run.seed)},
      {"notice", "research use, not a medical device"}};
}

}  // namespace chexnet
