// One row per line, for people who compare two runs: no row depends on the
// order of others, and what decides about a result (sums of files, seed,
// libraries) is always there.
#include "chexnet/train/settings.hpp"

#include <torch/headeronly/version.h>
#include <unistd.h>

#include "chexnet/data/findings.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/run/recipe.hpp"
#include "chexnet/run/schedule.hpp"

namespace chexnet {
namespace {

std::string split_text(const Split& split) {
  return split.rows.empty()
             ? "none"
             : std::to_string(split.rows.size()) + " images, sha256 " +
                   split.sha256.substr(0, 12);
}

}  // namespace

Rows settings_table(const TrainingContext& run, const std::string& weights,
                    const std::string& engine) {
  const Config& config = run.config;
  const DataConfig& data = config.data;
  const Manifest& manifest = run.dataset.manifest;
  const Splits& splits = run.dataset.splits;
  return {
      {"run folder", run.folder.path().string()},
      {"manifest", manifest.path + " (" + std::to_string(manifest.size()) +
                       " images, sha256 " + manifest.sha256.substr(0, 12) +
                       ")"},
      {"train", split_text(splits.train)},
      {"val", split_text(splits.val)},
      {"test", split_text(splits.test)},
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
      {"network", config.model.arch + ", weights " + weights},
      {"precision", std::string(choice_name(run.network.options().precision)) +
                        (config.train.precision ? "" : " (auto)")},
      {"global batch", std::to_string(run.decisions.batch) + " images on " +
                           std::to_string(run.comm.size()) + " ranks"},
      {"a BatchNorm sees",
       batchnorm_text(config, run.decisions.batch, run.comm.size())},
      {"loss", loss_text(config.train)},
      {"optimizer", std::string(choice_name(config.train.optimizer)) +
                        ", schedule " + choice_name(config.train.schedule)},
      {"device", run.device.description},
      {"computed by", engine},
      {"communication", run.comm.description()},
      {"libraries", std::string("LibTorch ") + TORCH_VERSION},
      {"seed", std::to_string(config.run.seed)},
      {"notice", "research use, not a medical device"}};
}

MetricFields start_fields(const TrainingContext& run) {
  const auto images =
      static_cast<std::uint64_t>(run.dataset.splits.train.rows.size());
  return {{"ranks", static_cast<std::int64_t>(run.comm.size())},
          {"total_steps",
           total_steps(run.config.train, run.decisions.batch, images)},
          {"batch", run.decisions.batch},
          {"train_images", static_cast<std::int64_t>(images)},
          {"host", host_name()},
          {"pid", static_cast<std::int64_t>(getpid())},
          {"job", batch_job(process_environment()).id}};
}

}  // namespace chexnet
