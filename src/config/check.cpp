// Faults that no single value shows: required keys, and keys that contradict
// each other.
#include <algorithm>
#include <cmath>
#include <set>

#include "assign.hpp"
#include "chexnet/config/load.hpp"

namespace chexnet {

namespace {

void require(bool present, const std::string& key, const std::string& hint) {
  if (!present) config_error(key, "this key is required and missing", hint);
}

}  // namespace

void check_names_data(const DataConfig& config) {
  require(!config.manifest.path.empty(), "data.manifest.path",
          "name the table of images and labels, e.g. Data_Entry_2017.csv");
  require(!config.images.empty(), "data.images",
          "name the folder(s) with the images");
}

void check_input(const DataConfig& data) {
  if (data.crop > data.resize)
    config_error("data.crop", "larger than data.resize",
                 "choose crop <= resize");
  if (data.eval_resize != 0 && data.crop > data.eval_resize)
    config_error("data.crop", "larger than data.eval_resize",
                 "choose crop <= eval_resize");
  if (data.mean.size() != 3 || data.std.size() != 3)
    config_error("data.mean", "data.mean and data.std need three numbers each",
                 "one per input channel");
  if (std::ranges::any_of(data.std, [](double s) { return s <= 0; }))
    config_error("data.std", "must be positive",
                 "ImageNet's are 0.229, 0.224, 0.225");
}

void check_for_training(const Config& config) {
  check_names_data(config.data);
  require(!config.model.weights.empty(), "model.weights",
          "a .safetensors file, or 'none' for a random start");
  const std::set<SplitName> splits(config.eval.splits.begin(),
                                   config.eval.splits.end());
  if (splits.size() < config.eval.splits.size())
    config_error("eval.splits", "a split is named twice", "name each once");
  check_input(config.data);
  const Doubles& gamma = config.train.loss_gamma;
  if (!gamma.empty() && config.train.loss == LossKind::kBce)
    config_error("train.loss_gamma", "bce has no exponents",
                 "train.loss=focal or asymmetric, or leave it out");
  constexpr double kMostGamma = 100;
  const auto is_exponent = [](double g) { return g >= 0 && g <= kMostGamma; };
  if (!gamma.empty() &&
      (gamma.size() != 2 || !std::ranges::all_of(gamma, is_exponent)))
    config_error("train.loss_gamma", "two numbers from 0 to 100 are needed",
                 "of positives and of negatives, as [2, 2]");
  const Doubles& rungs = config.train.rungs;
  if (std::ranges::any_of(rungs, [](double e) { return e != std::floor(e); }) ||
      std::ranges::adjacent_find(rungs, std::ranges::greater_equal()) !=
          rungs.end())
    config_error("train.rungs", "no whole epochs that ascend", "as [1, 3, 9]");
  if (!rungs.empty() && config.eval.every_epochs == 0)
    config_error("train.rungs", "without eval.every_epochs there is no score",
                 "eval.every_epochs=1");
  if (config.train.betas.size() != 2)
    config_error("train.betas", "two numbers are needed",
                 "Adam's are [0.9, 0.999]");
  if (config.train.lr == 0)
    config_error("train.lr", "0: no weight would ever change",
                 "choose a rate above 0; `evaluate` scores without training");
  if (config.train.epochs <= 0 && config.train.max_steps <= 0)
    config_error("train.epochs",
                 "0 without train.max_steps: there is nothing to do",
                 "set one of the two");
  if (config.train.epochs > 0 &&
      config.train.warmup_epochs >= config.train.epochs)
    config_error("train.warmup_epochs",
                 "not less than train.epochs: the rate never arrives",
                 "choose a shorter warm-up");
  const bool draws =
      config.train.mixup > 0 || config.train.sampling != SamplingKind::kUniform;
  if (draws && config.data.pipeline != PipelineKind::kGlobal)
    config_error("data.pipeline",
                 "train.mixup and train.sampling draw from all images, which "
                 "old and new do not have",
                 "set data.pipeline=global");
  if (config.model.freeze_epochs > 0 &&
      config.model.freeze_until == FrozenPart::kNone)
    config_error("model.freeze_epochs", "nothing is frozen",
                 "name up to where with model.freeze_until, or leave it out");
  if (config.train.epochs > 0 &&
      static_cast<double>(config.model.freeze_epochs) >= config.train.epochs)
    config_error("model.freeze_epochs",
                 "not less than train.epochs: nothing would thaw",
                 "fewer, or 0 to keep it frozen");
  if (config.model.memory == ActivationMemory::kRecompute &&
      (config.train.engine == EngineKind::kAten ||
       config.train.precision == Precision::kFp64))
    config_error("model.memory",
                 "recompute, which only our own kernels can, and fp64 and "
                 "train.engine=aten compute without them",
                 "set model.memory=speed");
  if (config.launch.gradient_compression != GradientCompression::kNone &&
      config.train.precision == Precision::kFp64)
    config_error("launch.gradient_compression",
                 "16-bit gradients with fp64 training",
                 "set launch.gradient_compression=none");
}

}  // namespace chexnet
