// predict: probabilities of images that no table knows. Evaluation without
// labels: the same reader, loader, ranks and sums, so an image has here, bit
// for bit, the probabilities that `evaluate` writes for it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/ensemble.hpp"
#include "chexnet/eval/logit.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/run/config_agreement.hpp"
#include "chexnet/train/run/eval_batch.hpp"
#include "chexnet/train/run/input_set.hpp"
#include "chexnet/train/score_images.hpp"
#include "image_scores.hpp"
#include "model_file.hpp"
#include "object_files.hpp"
#include "predict_options.hpp"
#include "row_writer.hpp"

namespace chexnet {
namespace {

void warn_of_weighted_loss(const Config& config) {
  const TrainConfig& train = config.train;
  Strings keys;
  if (train.class_weights != LossWeighting::kNone)
    keys.push_back(std::string("train.class_weights=") +
                   choice_name(train.class_weights));
  if (train.loss != LossKind::kBce)
    keys.push_back(std::string("train.loss=") + choice_name(train.loss));
  if (!keys.empty())
    log_warning("[predict] the model was trained with " + listed(keys) +
                ": its scores are shifted away from prevalence and are no "
                "probabilities");
}

// Behind the logits of `findings` stand features, if there are more.
ImageScore score_of(const ImageLogits& image, size_t findings) {
  ImageScore score{"", image.error, {}, {}, image.note};
  for (size_t k = 0; k < image.logits.size(); ++k) {
    const double value = image.logits[k];
    if (k < findings)
      score.probabilities.push_back(probability_of(value));
    else
      score.features.push_back(static_cast<float>(value));
  }
  score.spreads.assign(image.spreads.begin(), image.spreads.end());
  return score;
}

// Of each finding; 0.5 where the model has none for it.
std::vector<double> thresholds_of(const ImageScoreRows& texts,
                                  size_t findings) {
  std::vector<double> thresholds;
  for (size_t k = 0; k < findings; ++k)
    thresholds.push_back(texts.threshold(k).value_or(0.5));
  return thresholds;
}

void say_model(const std::filesystem::path& file, const ModelMetadata& metadata,
               const std::optional<Decisions>& decisions) {
  if (metadata.rules && !decisions)
    return log_info("model " + file.string() +
                    ": probabilities alone, no yes or no");
  if (!metadata.rules)
    return log_info("model " + file.string() +
                    ": probabilities alone, no yes or no, as it was not "
                    "scored on validation");
  log_info("model " + file.string() + ": yes or no by its thresholds (" +
           decisions->rule + "), chosen on " +
           counted(static_cast<int64_t>(metadata.rules->images), "image") +
           " of validation (SHA-256 " +
           metadata.rules->chosen_on.substr(0, 12) + ")");
  if (metadata.out_of_fold)
    log_warning(std::string("[predict] ") + kChosenOutOfFold);
}

void say_end(const ImageScoresSummary& summary) {
  log_info(summary_text(summary));
  if (summary.scored == 0)
    log_error(
        "[predict] no image could be scored: each has an error. Hint: see the "
        "errors above or in the output");
}

// By now the contents of folders and lists are known.
void keep_images(const PredictOptions& options, const InputSet& set) {
  for (const auto& place : set.places)
    if (place.listed) refuse_inside(options.folders(), place.path);
  warn_of_inputs_around(options.folders(), set.places);
  if (!std::filesystem::exists(options.out)) return;
  Strings names;
  for (const auto& image : set.images) names.push_back(image.name);
  refuse_to_replace(options.out, names);
}

// Those that are scored, row by row; rank 0.
std::vector<const InputImage*> scored_images(const InputSet& set) {
  std::vector<const InputImage*> images;
  for (const auto& image : set.images)
    if (image.problem.empty()) images.push_back(&image);
  return images;
}

// All that comes of the scores. Rows, folders and DICOM files are rank 0's;
// every rank draws heat maps.
class Outputs {
 public:
  // Collective. `options` and `set` outlive it.
  Outputs(const PredictOptions& options, ImageScoreRows texts,
          const InputSet& set, const std::vector<std::string>& findings,
          Communicator& comm)
      : options_(options),
        set_(set),
        findings_(findings.size()),
        texts_(std::move(texts)),
        asked_(scored_images(set)) {
    const bool first = comm.rank() == 0;
    if (first) folders_.emplace(options.folders());
    if (first) rows_.emplace(set, texts_, RowPlaces{options.out, options.json});
    if (!options_.heat_maps.folder.empty())
      heat_maps_.emplace(options_.heat_maps, findings,
                         thresholds_of(texts_, findings.size()));
    if (first && !options.dicom.empty())
      results_.emplace(options.dicom, texts_, options_.heat_maps.folder);
  }

  void take(const ImageLogits& image) {
    scored_ += image.error.empty() ? 1 : 0;
    ImageScore score = score_of(image, findings_);
    if (!asked_.empty() && score.error.empty())
      score.note = joined_notes(asked_[image.index]->dicom_note, score.note);
    if (heat_maps_ && score.error.empty()) {
      const uint32_t row = set_.split.rows[image.index];
      const std::string& name = set_.dataset.manifest.images[row];
      score.heat_maps = heat_maps_->choose(row, name, score.probabilities);
    }
    if (results_)
      results_->take(set_.split.rows[image.index], *asked_[image.index], score);
    if (rows_) rows_->take(std::move(score));
  }

  // Collective. False where any rank was asked to stop.
  bool draw(const RunContext& run) {
    if (heat_maps_ && !heat_maps_->write(run, stop_requested)) return false;
    if (rows_ && heat_maps_) log_info(heat_maps_->text());
    return true;
  }

  // The rest. `seconds`: of reading and scoring.
  ExitCode finish(double seconds, const ReportedModel& model) {
    if (rows_) say_end(rows_->finish(seconds));
    if (results_ && !results_->write(model)) return ExitCode::kRequeue;
    if (folders_) folders_->finish();
    return scored_ > 0 ? ExitCode::kDone : ExitCode::kData;
  }

 private:
  const PredictOptions& options_;
  const InputSet& set_;
  size_t findings_;
  ImageScoreRows texts_;
  std::vector<const InputImage*> asked_;
  std::optional<HeldFolders> folders_;
  std::optional<RowWriter> rows_;
  std::optional<HeatMapFolder> heat_maps_;
  std::optional<DicomResults> results_;
  size_t scored_ = 0;
};

// The images of `set` through the network, each to `outputs`.
ExitCode score(const PredictOptions& options, const RunContext& run,
               const InputSet& set, const ReportedModel& model,
               Outputs& outputs) {
  const double start = now_s();
  // Rows on a terminal show how far it is.
  const bool shows_rows = options.json || options.out.empty();
  const ScoringRequest request{
      .stop = stop_requested,
      .take = [&](const ImageLogits& image) { outputs.take(image); },
      .absent_is_damage = true,
      .notes = true,
      .progress = !(shows_rows && isatty(STDOUT_FILENO) != 0)};
  bool whole = set.split.rows.empty() || score_images(run, set.split, request);
  const double seconds = now_s() - start;
  whole = whole && outputs.draw(run);
  if (whole) return outputs.finish(seconds, model);
  if (run.comm.rank() == 0)
    log_info(options.out.empty() ? "stopped on request"
                                 : "stopped on request; --out was not written");
  return ExitCode::kRequeue;
}

constexpr const char* kReadingModel = "reading the model";

int predict(const PredictOptions& options, Invocation& invocation) {
  std::optional<StorageWait> files(std::in_place, timeout_of_start(options.set),
                                   kReadingModel);
  const auto file = resolve_model(options.model);
  const ModelMetadata metadata = read_model_metadata(file);
  check_output_places(options, file, metadata);
  const Config config =
      predict_config(file, metadata, options, invocation.variables);
  if (options.features) check_features(metadata, config);
  files.reset();
  const RankWorld world =
      enter_world(config.launch, invocation,
                  {.reads_stdin = options.reads_stdin(),
                   .own_descriptor = options.own_descriptor(),
                   .stops = true});
  if (const auto code = world.parent_exit_code()) return *code;
  Communicator& comm = world.comm();
  check_same_config(comm, config);
  const Device device = choose_device(config.launch, comm);
  InputSet set = load_inputs(
      config, options.inputs, metadata.findings,
      options.any_dicom ? TakenDicom::kAny : TakenDicom::kChestXrays, comm);
  check_eval_batch(config, set.split, metadata.members, comm,
                   device.where.is_cpu());
  ModelNetworks networks(file, config, metadata, device, comm);
  if (options.features) {
    Manifest& outputs = set.dataset.manifest;
    const int64_t features = networks.add_features();
    for (int64_t i = 0; i < features; ++i)
      outputs.findings.push_back("feature " + std::to_string(i));
    outputs.labels.resize(outputs.size() * outputs.finding_count());
  }
  files.emplace(config.launch.timeout_s, kReadingModel);
  const auto decisions = decisions_of(metadata, config, options);
  if (comm.rank() == 0) {
    keep_images(options, set);
    warn_of_weighted_loss(config);
    say_model(file, metadata, decisions);
  }
  const LossWeights weights = no_loss_weights(set.dataset.manifest);
  const ImageScoreRows texts(metadata.findings, decisions,
                             widest_name(set.images), metadata.members > 1);
  Outputs outputs(options, texts, set, metadata.findings, comm);
  ReportedModel model{choice_name(config.model.arch), ""};
  if (!options.dicom.empty() && comm.rank() == 0)
    model.sha256 = sha256_file(file);
  files.reset();
  const RunContext run =
      networks.context(config, comm, device, set.dataset, weights);
  return static_cast<int>(score(options, run, set, model, outputs));
}

}  // namespace

void add_predict(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "predict", "probabilities of images without a table or labels");
  auto options = std::make_shared<PredictOptions>();
  add_predict_options(*command, *options);
  command->callback([&invocation, options, command] {
    require_heat_maps(*command, "--heatmaps");
    invocation.run = [&invocation, options] {
      ObjectFiles objects(options->set);
      PredictOptions local = *options;
      local.model = objects.model(options->model);
      local.out = objects.output_file(options->out, kProbabilitiesHead);
      return objects.finish(predict(local, invocation));
    };
  });
}

}  // namespace chexnet
