// predict: probabilities of images that no table knows. Evaluation without
// labels: the same reader, loader, ranks and sums, so an image has here, bit
// for bit, the probabilities that `evaluate` writes for it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/image_scores.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/checkpoint/store.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/run/input_set.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/network_options.hpp"
#include "chexnet/train/score_images.hpp"
#include "dicom_results.hpp"
#include "heat_map_options.hpp"
#include "model_file.hpp"
#include "remote_files.hpp"
#include "row_writer.hpp"
#include "scored_data_check.hpp"

namespace chexnet {
namespace {

constexpr const char* kHead = "image,prob:";  // of our CSV

struct Options {
  std::string model, out;
  std::vector<std::string> inputs, lists, set;
  int ranks = 0;
  bool json = false;
  std::string rule = "youden", calibration = "temperature";
  HeatMapOptions heat_maps;
  DicomResultOptions dicom;

  std::vector<std::string> named() const {
    std::vector<std::string> all = inputs;
    for (const auto& list : lists)
      all.push_back(list == "-" ? "-" : "@" + list);
    return all;
  }
};

// With another preprocessing, network or list of findings the scores would not
// be this model's.
void refuse_another_model(const Config& own, const Config& asked) {
  static constexpr std::array kOfTheModel = {
      "data.resize",      "data.eval_resize", "data.crop",
      "data.resize_kind", "data.jpeg_scale",  "data.mean",
      "data.std",         "data.findings",    "model.arch"};
  for (const char* key : kOfTheModel) {
    const ConfigOption& option = *find_option(key);
    const std::string is = option_text(option, own);
    if (option_text(option, asked) != is)
      throw ConfigError("[predict] --set " + std::string(key) +
                        ": the model was trained with " + is +
                        ", and with anything else its scores would not be its "
                        "own. Hint: leave this --set away");
  }
}

Config config_of(const std::filesystem::path& file, const ModelCard& card,
                 const Options& options, Strings& variables) {
  const auto of_options = [&options](Config& c) {
    if (options.ranks > 0) c.launch.ranks = options.ranks;
    // A damaged image is a row of the result, however many there are.
    c.data.corrupt = OnDamage::kSkip;
    c.data.corrupt_limit = 1;
  };
  Config config =
      model_config(file, card, {options.set, &variables, of_options});
  refuse_another_model(model_config(file, card, {}), config);
  return config;
}

void warn_of_weighted_loss(const Config& config) {
  if (config.train.loss_weights != LossWeighting::kNone)
    log_warning(std::string("[predict] the model was trained with "
                            "train.loss_weights=") +
                choice_name(config.train.loss_weights) +
                ": its scores are shifted away from prevalence and are no "
                "probabilities");
}

// Without the model's own rules there is no yes and no.
std::optional<Decisions> decisions_of(const ModelCard& card,
                                      const Config& config,
                                      const Options& options) {
  if (const auto* rules = rules_of_crops(card, config.eval.crops))
    return Decisions{options.rule,
                     *find_choice<Calibration>(options.calibration),
                     rules->findings};
  return std::nullopt;
}

ImageScore score_of(const ImageLogits& image) {
  ImageScore score{"", image.error, {}, {}};
  for (const double logit : image.logits)
    score.probabilities.push_back(probability_of(logit));
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

void say_model(const std::filesystem::path& file, const ModelCard& card) {
  log_info("model " + file.string() +
           (card.rules ? ""
                       : ": probabilities alone, no yes or no, as it was not "
                         "scored on validation"));
}

void say_end(const ImageScoresSummary& summary) {
  log_info(summary_text(summary));
  if (summary.scored == 0)
    log_error(
        "[predict] no image could be scored: each has an error. Hint: see the "
        "errors above or in the output");
}

// Before the work: places to write to, and none that is read.
void check_output_places(const Options& options,
                         const std::filesystem::path& model,
                         const ModelCard& card) {
  Strings inputs = options.lists;
  for (const auto& input : options.inputs)
    inputs.push_back(input.starts_with('@') ? input.substr(1) : input);
  inputs.push_back(model.string());
  refuse_to_replace(options.out, inputs);
  check_own_output(options.out, kHead);
  check_heat_map_options(options.heat_maps, card.findings);
  check_dicom_result_options(options.dicom);
}

// Of a folder it is known by now what is in it.
void keep_images(const Options& options, const InputSet& set) {
  if (!std::filesystem::exists(options.out)) return;
  Strings names;
  for (const auto& image : set.images) names.push_back(image.name);
  refuse_to_replace(options.out, names);
}

// Secondary captures need heat maps too: where none are wanted as pictures,
// they lie beside the converted DICOM files and go with them. "" without any.
std::string folder_for_captures(const InputSet& set, Communicator& comm) {
  const std::string folder =
      set.converted ? (set.converted->path() / "heat-maps").string() : "";
  return gather_text(comm, folder).front();
}

// Those that are scored, row by row; rank 0.
std::vector<const InputImage*> scored_images(const InputSet& set) {
  std::vector<const InputImage*> images;
  for (const auto& image : set.images)
    if (image.problem.empty()) images.push_back(&image);
  return images;
}

int predict(const Options& options, Invocation& invocation) {
  const auto file = resolve_model(options.model);
  const ModelCard card = read_model_card(file);
  check_output_places(options, file, card);
  const Config config = config_of(file, card, options, invocation.variables);
  const RankWorld world =
      enter_world(config.launch, invocation,
                  {.run_folder = {}, .resume_command = {}, .stops = true});
  if (const auto code = world.parent_exit_code()) return *code;
  Communicator& comm = world.comm();
  const Device device = choose_device(config.launch, comm);
  const InputSet set =
      load_inputs(config, options.named(), card.findings, comm);
  Network network(network_spec(config.model.arch),
                  static_cast<int64_t>(card.findings.size()),
                  network_options(config, device, comm));
  read_shared_network(file, config, card, comm, network);
  if (comm.rank() == 0) {
    keep_images(options, set);
    warn_of_weighted_loss(config);
  }
  const LossWeights weights =
      loss_weights(LossWeighting::kNone, set.dataset.manifest, set.split);
  const double start = now_s();
  const ImageScoreRows texts(card.findings, decisions_of(card, config, options),
                             widest_name(set.images));
  std::optional<RowWriter> rows;  // on rank 0
  if (comm.rank() == 0) {
    say_model(file, card);
    rows.emplace(set, texts, RowPlaces{options.out, options.json});
  }
  HeatMapOptions pictures = options.heat_maps;
  if (pictures.folder.empty() && !options.dicom.captures.empty())
    pictures.folder = folder_for_captures(set, comm);
  std::optional<HeatMapFolder> heat_maps;
  if (!pictures.folder.empty())
    heat_maps.emplace(pictures, card.findings,
                      thresholds_of(texts, card.findings.size()));
  std::optional<DicomResults> results;  // on rank 0
  if (comm.rank() == 0 && options.dicom.wanted())
    results.emplace(options.dicom, texts, pictures.folder);
  const auto asked = scored_images(set);
  size_t scored = 0;
  // Rows on a terminal show how far it is.
  const bool shows_rows = options.json || options.out.empty();
  ScoringRequest request{
      .stop = stop_requested,
      .take = {},
      .absent_is_damage = true,
      .progress = !(shows_rows && isatty(STDOUT_FILENO) != 0)};
  request.take = [&](const ImageLogits& image) {
    scored += image.error.empty() ? 1 : 0;
    ImageScore score = score_of(image);
    if (heat_maps && score.error.empty()) {
      const uint32_t row = set.split.rows[image.index];
      score.heat_maps = heat_maps->choose(row, set.dataset.manifest.images[row],
                                          score.probabilities);
    }
    if (results) results->take(*asked[image.index], score);
    if (rows) rows->take(std::move(score));
  };
  const RunContext run{config, comm, device, set.dataset, network, weights};
  bool whole = set.split.rows.empty() || score_images(run, set.split, request);
  const double seconds = now_s() - start;
  if (whole && heat_maps) whole = heat_maps->write(run, stop_requested);
  if (whole && rows && !options.heat_maps.folder.empty())
    log_info(heat_maps->text());
  if (!whole) {
    if (comm.rank() == 0) log_info("stopped on request; --out was not written");
    return static_cast<int>(ExitCode::kRequeue);
  }
  if (rows) say_end(rows->finish(seconds));
  if (results &&
      !results->write({choice_name(config.model.arch), sha256_file(file)}))
    return static_cast<int>(ExitCode::kRequeue);
  return static_cast<int>(scored > 0 ? ExitCode::kDone : ExitCode::kData);
}

}  // namespace

void add_predict(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "predict", "probabilities of images without a table or labels");
  auto options = std::make_shared<Options>();
  add_model_option(*command, options->model)->required();
  command->add_option(
      "input", options->inputs,
      "images, folders, archives, packs, s3:// places; @FILE: a list, one path "
      "per line; -: a list on stdin");
  add_repeated_option(*command, "--list", options->lists,
                      "a list of inputs, as @FILE");
  command
      ->add_option("--out", options->out,
                   "write image, probabilities, yes or no, and errors to this "
                   "CSV")
      ->check(in_known_store());
  command
      ->add_option("--rule", options->rule,
                   "which of the model's thresholds says yes: youden, "
                   "sensitivity or specificity (default youden)")
      ->check(CLI::IsMember({"youden", "sensitivity", "specificity"}));
  command
      ->add_option("--calibration", options->calibration,
                   "temperature or isotonic, as fitted on validation (default "
                   "temperature)")
      ->check(CLI::IsMember(choice_names<Calibration>()));
  add_set_option(*command, options->set, "the run's config");
  add_ranks_option(*command, options->ranks);
  add_heat_map_options(*command, options->heat_maps);
  add_dicom_result_options(*command, options->dicom);
  command->add_flag("--json", options->json,
                    "one JSON object per image on stdout, and one of all "
                    "(docs/json.md)");
  command->callback([&invocation, options, command] {
    require_heat_maps(*command, options->heat_maps.kind,
                      {"--heatmaps", "--dicom-sc"});
    if (options->inputs.empty() && options->lists.empty())
      throw CLI::RequiredError("an input or --list");
    invocation.run = [&invocation, options] {
      RemoteFiles remote(options->set);
      Options local = *options;
      local.model = remote.input(options->model, FetchedFiles::kModel);
      local.out = remote.output_file(options->out, kHead);
      local.heat_maps.folder = remote.output_folder(options->heat_maps.folder);
      return remote.finish(predict(local, invocation));
    };
  });
}

}  // namespace chexnet
