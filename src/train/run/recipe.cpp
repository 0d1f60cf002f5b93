// A BatchNorm of rank r sees batch / accumulate / ranks images (all ranks'
// where it is synchronized): only here the number of ranks changes what is
// learned, and not only how sums round. So the start prints it, with a warning
// where few images make it noisy.
#include "chexnet/train/run/recipe.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <filesystem>
#include <variant>

#include "chexnet/config/load.hpp"
#include "chexnet/config/loss_shape.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/train/run/schedule.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// With fewer, a network's error grows (Wu and He, Group Normalization, 2018).
constexpr int64_t kFewForBatchNorm = 8;

// "./x" and "x/" are "/home/me/x". Where ".." leads after a link only the hosts
// of the run know, so it stays.
std::string plain_path(const std::string& path) {
  if (path.empty() || path == "none" || is_s3(path)) return path;
  std::error_code ignored;
  fs::path plain;
  for (const auto& part : fs::absolute(path, ignored))
    if (!part.empty() && part != ".") plain /= part;
  return plain.string();
}

void write_paths_plainly(Config& config) {
  for (const auto& option : config_options()) {
    if (!option.is_path) continue;
    const FieldRef field = option.field(config);
    if (auto* const* path = std::get_if<std::string*>(&field))
      **path = plain_path(**path);
    if (auto* const* paths = std::get_if<Strings*>(&field))
      std::ranges::transform(**paths, (*paths)->begin(), plain_path);
  }
}

bool trains_no_batchnorm(const Config& config) {
  return config.model.always_frozen() == FrozenPart::kBackbone;
}

void warn_of_small_batchnorm(const Config& config, int64_t batch, int ranks) {
  const int64_t images = images_per_batchnorm(config, batch, ranks);
  if (trains_no_batchnorm(config) || images >= kFewForBatchNorm) return;
  log_warning("[train] a BatchNorm normalizes over " +
              counted(images, "image") +
              " only, so this run trains differently from one with more. Hint: "
              "model.sync_batchnorm=true, a larger train.batch (with "
              "train.lr_scaling), fewer ranks, or a "
              "smaller train.accumulate");
}

void warn_of_frozen_noise(const ModelConfig& model) {
  if (model.freeze_until == FrozenPart::kNone || !model.starts_random()) return;
  log_warning(formatted(
      "[train] model.freeze_until={} with model.weights=none: what is frozen "
      "are random numbers. Hint: name a model file with model.weights",
      choice_name(model.freeze_until)));
}

void warn_of_large_batch(int64_t batch, int64_t images) {
  if (batch > images)
    log_warning(formatted(
        "[train] train.batch={}: the training split has {}, so a step reads "
        "some of them more than once. Hint: train.batch={} or less",
        batch, counted(images, "image"), images));
}

void warn_of_chosen_batch(const std::string& batch) {
  log_warning(
      "[train] train.batch: auto chose " + batch +
      " images by the memory that is free here and now; elsewhere it chooses "
      "others, so "
      "this config alone does not repeat the run. Hint: set train.batch=" +
      batch + " to repeat it; train.lr_scaling lets the rate follow a batch");
}

}  // namespace

int64_t images_per_batchnorm(const Config& config, int64_t batch, int ranks) {
  assert(batch > 0 && ranks > 0);
  const int64_t micro_batch = batch / config.train.accumulate;
  return config.model.sync_batchnorm ? micro_batch : micro_batch / ranks;
}

std::string batchnorm_text(const Config& config, int64_t batch, int ranks) {
  if (trains_no_batchnorm(config))
    return "running statistics, which stay (frozen backbone)";
  return counted(images_per_batchnorm(config, batch, ranks), "image") +
         (config.model.sync_batchnorm ? " (synchronized)" : " of its rank") +
         (config.model.freeze_until == FrozenPart::kNone
              ? ""
              : "; running statistics, which stay, where it is frozen");
}

std::string frozen_text(const ModelConfig& model) {
  if (model.freeze_until == FrozenPart::kNone) return "";
  return std::string("frozen until ") + choice_name(model.freeze_until) +
         (model.freeze_epochs > 0
              ? " for " + counted(model.freeze_epochs, "epoch")
              : "");
}

bool moves_scores(const TrainConfig& config) {
  return config.class_weights != LossWeighting::kNone ||
         config.sampling != SamplingKind::kUniform ||
         config.loss != LossKind::kBce;
}

std::string loss_text(const TrainConfig& config) {
  const bool weighted = config.class_weights != LossWeighting::kNone;
  std::string text = config.loss == LossKind::kBce
                         ? "binary cross-entropy"
                         : std::string(choice_name(config.loss)) + " loss";
  if (const LossShape shape = loss_shape(config); !shape.is_cross_entropy())
    text += ", exponents " + number_text(shape.gamma_positive) + " and " +
            number_text(shape.gamma_negative) +
            (shape.margin > 0 ? ", margin " + number_text(shape.margin) : "");
  if (weighted)
    text += std::string(", weights ") + choice_name(config.class_weights);
  if (!weighted && config.loss == LossKind::kBce) return "unweighted " + text;
  return text +
         ": scores are shifted away from prevalence, so they are no "
         "probabilities";
}

void warn_of_recipe(const Config& config, const RunDecisions& decisions,
                    int ranks, int64_t train_images) {
  warn_of_large_batch(decisions.batch, train_images);
  if (decisions.chose_batch)
    warn_of_chosen_batch(std::to_string(decisions.batch));
  warn_of_small_batchnorm(config, decisions.batch, ranks);
  warn_of_frozen_noise(config.model);
}

std::string recipe_text(Config config) {
  const TrainConfig unused;
  TrainConfig& train = config.train;
  DataConfig& data = config.data;
  LaunchConfig& launch = config.launch;
  config.run.dir.clear();
  config.run.name.clear();
  if (!data.val_list.empty()) data.val_fraction = DataConfig().val_fraction;
  if (data.train_crop != TrainCrop::kResized)
    data.crop_area_min = DataConfig().crop_area_min;
  if (data.eval_resize == 0) data.eval_resize = data.resize;
  write_paths_plainly(config);
  if (train.batch) {
    train.lr = scaled_rate(train, *train.batch);
    train.lr_scaling = unused.lr_scaling;
    train.lr_base_batch = unused.lr_base_batch;
  }
  const bool is_fp32 = !train.precision || train.precision == Precision::kTf32;
  if (is_fp32 && launch.device == DeviceKind::kCpu)
    train.precision = Precision::kFp32;
  if (launch.ranks == 1) {
    launch.gradient_compression = LaunchConfig().gradient_compression;
    launch.bucket_mb = LaunchConfig().bucket_mb;
  }
  if (train.optimizer == OptimizerKind::kSgd) {
    train.betas = unused.betas;
    train.eps = unused.eps;
  } else {
    train.momentum = unused.momentum;
  }
  if (train.loss != LossKind::kBce) {
    const LossShape shape = loss_shape(train);
    train.loss_gamma = {shape.gamma_positive, shape.gamma_negative};
  }
  const bool plateau = train.schedule == ScheduleKind::kPlateau;
  const bool step = train.schedule == ScheduleKind::kStep;
  if (!plateau) train.plateau_patience = unused.plateau_patience;
  if (!step) train.step_epochs = unused.step_epochs;
  if (!plateau && !step) train.decay_factor = unused.decay_factor;
  return config_yaml(config);
}

std::optional<BatchNormChange> batchnorm_change(const Config& config,
                                                int64_t batch,
                                                const SummationOrder& before,
                                                const SummationOrder& now) {
  const auto images_of = [&](const SummationOrder& order) {
    Config with_order = config;
    with_order.train.accumulate = order.accumulate;
    return images_per_batchnorm(with_order, batch,
                                static_cast<int>(order.ranks));
  };
  const BatchNormChange change = {images_of(before), images_of(now)};
  if (trains_no_batchnorm(config) || change.before == change.now)
    return std::nullopt;
  return change;
}

std::string resume_effect_text(
    const std::optional<BatchNormChange>& batchnorm) {
  if (!batchnorm)
    return "the run goes on, but sums round differently, so weights will not "
           "be equal to the last bit";
  return "a BatchNorm normalizes over " + counted(batchnorm->now, "image") +
         ", and did over " + std::to_string(batchnorm->before) +
         ", so from here the run trains differently, not only up to rounding. "
         "Hint: resume with the ranks and the train.accumulate that the run "
         "had; model.sync_batchnorm=true makes runs independent of the ranks";
}

}  // namespace chexnet
