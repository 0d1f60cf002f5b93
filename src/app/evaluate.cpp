// evaluate: scores of a model on a split or on any table, or of somebody's
// table of probabilities.
//
// A .safetensors file outside of its run folder knows no paths
// (model_file.cpp): what it needs to read images then comes from --manifest,
// --images and --set.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/shared_work.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/eval/figures_csv.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/predict.hpp"
#include "chexnet/train/run/config_agreement.hpp"
#include "chexnet/train/run/eval_batch.hpp"
#include "heat_map_options.hpp"
#include "localization_options.hpp"
#include "model_file.hpp"
#include "object_files.hpp"
#include "scored_data_check.hpp"
#include "scoring_options.hpp"

namespace chexnet {
namespace {

constexpr const char* kReadingFirst = "reading the model and tables";
constexpr const char* kPredictionsHead = "image,label:";  // of our CSV

struct EvaluateOptions {
  std::string model, split = "test", predictions, out;
  std::vector<std::string> manifests, images, set;
  int ranks = 0;
  BoxOptions boxes;
  ScoringOptions scoring;
  S3Config s3;  // of --set
};

void say_what_has_no_scores(const Manifest& manifest,
                            const Predictions& predictions,
                            const std::string& path) {
  Strings absent;
  for (const auto& name : manifest.findings)
    if (!find_finding(predictions.findings, name)) absent.push_back(name);
  if (!absent.empty())
    log_info("not scored, as " + path +
             " has no such column: " + listed(absent));
}

void refuse_unused_targets(const EvaluateOptions& options) {
  for (const auto& item : options.set)
    if (options.scoring.choose_on.empty() &&
        (item.starts_with("eval.sensitivity=") ||
         item.starts_with("eval.specificity=")))
      throw ConfigError(
          "[evaluate] --set {}: thresholds of this rule are chosen with "
          "--choose-on, and without it they are the model's own. Hint: "
          "--choose-on RUN/predictions_val.csv",
          item);
}

// Before the work: output folders must exist, and no output may be an input.
void check_outputs(const EvaluateOptions& options,
                   const std::filesystem::path& model) {
  Strings inputs = options.manifests;
  inputs.insert(inputs.end(),
                {options.predictions, options.scoring.choose_on,
                 options.scoring.against, options.boxes.list, model.string()});
  refuse_to_replace(options.out, inputs);
  inputs.push_back(options.out);
  refuse_to_replace(options.scoring.figures, inputs);
  prepare_own_output(options.out, kPredictionsHead);
  prepare_own_output(options.scoring.figures, kFiguresHead);
}

// No network and no images: somebody's probabilities, compared with a manifest
// or with the labels in their table.
int evaluate_predictions(const EvaluateOptions& options) {
  check_outputs(options, {});
  Predictions predictions;
  OtherTables others;
  std::optional<Manifest> manifest;
  std::optional<StorageWait> files(std::in_place, timeout_of_start(options.set),
                                   kReadingFirst);
  const Config config =
      load_config({}, options.set, nullptr, [&options](Config& c) {
        c.data.manifest.path = options.manifests;
        c.data.manifest.split.clear();
      });
  if (options.manifests.empty()) {
    if (config.eval.by != ScoredBy::kImage)
      throw ConfigError(
          "[evaluate] eval.by={}: a table of predictions does not say whose "
          "its images are. Hint: --manifest TABLE",
          choice_name(config.eval.by));
    predictions = read_predictions(options.predictions, nullptr);
    others = read_other_tables(options.scoring, nullptr);
  } else {
    manifest = read_manifest(config.data, config.eval);
    check_scored_by(*manifest, config.eval);
    predictions =
        scored_units(read_predictions(options.predictions, &*manifest),
                     *manifest, config.eval);
    others = read_other_tables(options.scoring, &*manifest);
    score_units(others, *manifest, config.eval);
    say_what_has_no_scores(*manifest, predictions, options.predictions);
  }
  const Manifest* table = manifest ? &*manifest : nullptr;
  files.reset();
  const Groups groups = read_groups(options.scoring, table, config.eval.by);
  print_scores({options.predictions, score(predictions, config.eval.findings)},
               {predictions, config.eval, config.eval.findings, others, nullptr,
                table, groups},
               options.scoring, static_cast<int>(allowed_cpus().size()),
               timeout_of_start(options.set));
  return 0;
}

// A network's outputs are the findings that it was trained for.
void refuse_other_findings(const std::filesystem::path& file,
                           const ModelMetadata& metadata,
                           const Config& config) {
  const Strings& asked = config.data.findings;
  if (asked.empty() || asked == metadata.findings) return;
  const std::string place =
      "[evaluate] data.findings: the network of " + file.string() + " ";
  const std::string remedy =
      "leave data.findings away; eval.findings chooses which are scored";
  for (const auto& name : asked)
    if (!find_finding(metadata.findings, name))
      throw ConfigError("{}does not know '{}'. Hint: nearest are {}; {}", place,
                        name, nearest_names(name, metadata.findings), remedy);
  throw ConfigError("{}was trained for {}, in this order. Hint: {}", place,
                    listed(metadata.findings, metadata.findings.size()),
                    remedy);
}

// Each member of folds has its own splits.
void check_has_split(const ModelMetadata& metadata, const std::string& split) {
  if (metadata.members > 1 && !metadata.splits.contains(split))
    throw ConfigError(
        "[evaluate] --split {}: the members of this ensemble have several. "
        "Hint: --manifest; predictions_val.csv has the scores of validation",
        split);
}

bool sets_findings(const EvaluateOptions& options) {
  return std::ranges::any_of(options.set, [](const std::string& item) {
    return item.starts_with("data.findings=");
  });
}

// The model has the settings of its training; options override them here.
Config config_of(const std::filesystem::path& file,
                 const ModelMetadata& metadata, const EvaluateOptions& options,
                 Strings& variables) {
  const auto of_options = [&options](Config& c) {
    if (options.ranks > 0) c.launch.ranks = options.ranks;
    if (!options.images.empty()) c.data.images = options.images;
  };
  Config config =
      model_config(file, metadata, {options.set, &variables, of_options});
  if (sets_findings(options)) refuse_other_findings(file, metadata, config);
  const bool has_table =
      !options.manifests.empty() || !config.data.manifest.path.empty();
  if (!has_table || config.data.images.empty())
    throw ConfigError(
        "[evaluate] {}: no table or no images are named. Hint: --manifest "
        "TABLE --images FOLDER",
        file.string());
  return config;
}

void say_what_is_not_scored(const TestSet& set) {
  if (!set.unlabeled.empty())
    log_info("not scored, as " + set.dataset.manifest.path +
             " has no such finding: " + listed(set.unlabeled));
  if (!set.unknown.empty())
    log_info("not scored, as the network does not know it: " +
             listed(set.unknown));
}

int say_stopped() {
  log_info("stopped on request; nothing was written");  // rank 0's words
  return static_cast<int>(ExitCode::kRequeue);
}

SplitScores split_scores(const TestSet& set, const Predictions& predictions,
                         double loss,
                         std::optional<Localization> localization) {
  SplitScores result{set.split.name, score(predictions, set.scored),
                     set.split.sha256};
  result.scores.loss = loss;
  result.missing = set.dataset.missing_of(set.split.name);
  result.localization = std::move(localization);
  return result;
}

void say_where_images_are(const EvaluateOptions& options,
                          const Config& config) {
  if (!options.manifests.empty() && options.images.empty())
    log_info("images are looked for in " + listed(config.data.images) +
             ", as the model's data.images says; --images names others");
}

int evaluate_model(const EvaluateOptions& options, Invocation& invocation) {
  if (options.ranks > 0)
    refuse_set_twice(options.set, "--ranks", "launch.ranks");
  std::optional<StorageWait> files(std::in_place, timeout_of_start(options.set),
                                   kReadingFirst);
  const auto file = resolve_model(options.model);
  check_outputs(options, file);
  OtherTables others = read_other_tables(options.scoring, nullptr);
  const auto boxes = read_listed_boxes(options.boxes, options.s3);
  const ModelMetadata metadata = read_model_metadata(file);
  const auto config = config_of(file, metadata, options, invocation.variables);
  const bool is_split = options.manifests.empty();
  if (is_split) check_has_split(metadata, options.split);
  files.reset();
  const RankWorld world =
      enter_world(config.launch, invocation, {.stops = true});
  if (const auto code = world.parent_exit_code()) return *code;
  Communicator& comm = world.comm();
  check_same_config(comm, config);
  const Device device = choose_device(config.launch, comm);
  if (comm.rank() == 0) say_where_images_are(options, config);
  TestSet set;
  try {
    set = is_split ? load_split(config, options.split, metadata.findings, comm,
                                stop_requested)
                   : load_tables(config, options.manifests, metadata.findings,
                                 comm, stop_requested);
  } catch (const WorkStopped&) {
    return say_stopped();
  }
  check_eval_batch(config, set.split, metadata.members, comm,
                   device.where.is_cpu());
  const Manifest& manifest = set.dataset.manifest;
  check_scored_by(manifest, config.eval);
  files.emplace(config.launch.timeout_s, kReadingFirst);
  TrainingOverlap overlap;  // rank 0
  Groups groups;            // rank 0
  if (comm.rank() == 0) {
    say_what_is_not_scored(set);
    groups = read_groups(options.scoring, &manifest, config.eval.by);
    score_units(others, manifest, config.eval);
    overlap = check_scored_data({set, is_split ? options.split : ""}, config,
                                metadata, file);
  }
  files.reset();
  const ModelNetworks networks(file, config, metadata, device, comm);
  // Unweighted, so that losses of runs with other weights compare, and no
  // training split is needed.
  const LossWeights weights = no_loss_weights(manifest);
  const RunContext context =
      networks.context(config, comm, device, set.dataset, weights);
  const auto prediction = predict_split(context, set.split, stop_requested);
  const DecisionRules* rules = nullptr;  // rank 0
  if (comm.rank() == 0 && others.choose_on)
    warn_of_another_models_table(options.scoring.choose_on, file);
  if (prediction && comm.rank() == 0 && !others.choose_on)
    rules = rules_for(set, overlap, config, metadata);
  std::optional<Localization> localization;
  if (prediction && boxes)  // whose thresholds are for images
    localization =
        localize(context, set.split, *boxes, options.boxes,
                 {prediction->predictions,
                  config.eval.by == ScoredBy::kImage ? rules : nullptr},
                 stop_requested);
  if (!prediction || (boxes && !localization)) return say_stopped();
  if (comm.rank() == 0) {
    log_info("model " + file.string());
    const Predictions predictions =
        scored_units(prediction->predictions, manifest, config.eval);
    if (!options.out.empty())
      write_in_time(config.launch.timeout_s, options.out,
                    predictions_csv(predictions), "--out");
    print_scores(split_scores(set, predictions, prediction->loss,
                              std::move(localization)),
                 {predictions, config.eval, set.scored, others, rules,
                  &manifest, groups},
                 options.scoring, device.cores, config.launch.timeout_s);
  }
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "evaluate",
      "AUROC of a run, a checkpoint, or any table of probabilities");
  auto options = std::make_shared<EvaluateOptions>();
  add_model_option(*command, options->model);
  auto* predictions = command->add_option(
      "--predictions", options->predictions,
      "CSV with an image column and a probability column per finding");
  auto* manifest =
      add_repeated_option(*command, "--manifest", options->manifests,
                          "score all rows of this table instead of a split, "
                          "of data.manifest.format")
          ->check(in_known_store());
  add_repeated_option(*command, "--images", options->images,
                      "with --manifest: where its images are (data.images)")
      ->needs(manifest)
      ->excludes(predictions);
  command
      ->add_option("--split", options->split,
                   "train, val or test; val and test are refused where the "
                   "model was trained on their patients, train is not: its "
                   "figures are too good")
      ->excludes(predictions)
      ->excludes(manifest);
  command
      ->add_option("--out", options->out,
                   "write image, labels and probabilities to this CSV")
      ->excludes(predictions)
      ->check(in_known_store());
  add_set_option(*command, options->set, "the run's config");
  add_ranks_option(*command, options->ranks)->excludes(predictions);
  add_box_options(*command, options->boxes, predictions);
  add_scoring_options(*command, options->scoring);
  command->callback([&invocation, options, command] {
    require_heat_maps(*command, "--boxes");
    if (options->model.empty() && options->predictions.empty())
      throw CLI::RequiredError("a run, checkpoint or model, or --predictions,");
    if (!options->model.empty() && !options->predictions.empty())
      throw CLI::ValidationError(
          options->model,
          std::string("is taken for a run or model, which --predictions "
                      "excludes. Hint: ") +
              (command->count("--by") > 0
                   ? "an option takes one word: --by age --by sex"
                   : "leave one out: a run is scored anew, a table as it is"));
    invocation.run = [&invocation, options] {
      refuse_unused_targets(*options);
      ObjectFiles objects(options->set);
      EvaluateOptions local = *options;
      local.model = objects.model(options->model);
      local.out = objects.output_file(options->out, kPredictionsHead);
      local.scoring.figures =
          objects.output_file(options->scoring.figures, kFiguresHead);
      local.s3 = objects.s3();
      return objects.finish(options->predictions.empty()
                                ? evaluate_model(local, invocation)
                                : evaluate_predictions(local));
    };
  });
}

}  // namespace chexnet
