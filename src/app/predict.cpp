// predict: probabilities of images that no table knows. Evaluation without
// labels: the same reader, loader, ranks and sums, so an image has here, bit
// for bit, the probabilities that `evaluate` writes for it.
#include "chexnet/train/predict.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/image_scores.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/checkpoint/store.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/run/input_set.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/network_options.hpp"
#include "heat_map_options.hpp"
#include "model_file.hpp"

namespace chexnet {
namespace {

struct Options {
  std::string model, out;
  std::vector<std::string> inputs, lists, set;
  int ranks = 0;
  bool json = false;
  HeatMapOptions heat_maps;

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
  const Config own = model_config(file, card, {}, nullptr);
  Config config = model_config(file, card, options.set, &variables);
  refuse_another_model(own, config);
  if (options.ranks > 0) config.launch.ranks = options.ranks;
  // A damaged image is a row of the result, however many there are.
  config.data.corrupt = OnDamage::kSkip;
  config.data.corrupt_limit = 1;
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

// Nothing when it was stopped.
std::optional<SplitPrediction> score_images(const RunContext& run,
                                            const Split& split) {
  if (split.rows.empty()) return SplitPrediction{};
  return predict_split(run, split, stop_requested);
}

// Puts what was scored back among what was asked for. `heat_maps`: by row of
// `scored`.
ImageScores scores_of(const std::vector<InputImage>& asked,
                      const Predictions& scored, const ModelCard& card,
                      const std::map<std::size_t, HeatMapFiles>& heat_maps) {
  ImageScores scores;
  scores.findings = card.findings;
  const auto findings = static_cast<std::ptrdiff_t>(card.findings.size());
  std::size_t row = 0;
  for (const auto& input : asked) {
    ImageScore& image = scores.images.emplace_back();
    image = {input.name, input.problem, {}, {}};
    if (!input.problem.empty()) continue;
    const auto first = scored.probabilities.begin() +
                       static_cast<std::ptrdiff_t>(row) * findings;
    if (scored.scored(row))
      image.probabilities.assign(first, first + findings);
    else
      image.error = scored.reasons[row];
    if (const auto files = heat_maps.find(row); files != heat_maps.end())
      image.heat_maps = files->second;
    ++row;
  }
  return scores;
}

void write(const ImageScores& scores, const Options& options) {
  if (!options.out.empty())
    write_atomically(options.out, image_scores_csv(scores));
  if (options.json)
    std::cout << image_scores_json_lines(scores) << std::flush;
  else if (options.out.empty())
    std::cout << image_scores_text(scores) << std::flush;
  log_info(image_scores_summary(scores));
  if (scores.scored() == 0)
    log_error(
        "[predict] no image could be scored: each has an error. Hint: see the "
        "errors above or in the output");
}

int predict(const Options& options, Invocation& invocation) {
  check_output(options.out);
  const auto file = resolve_model(options.model);
  const ModelCard card = read_model_card(file);
  check_heat_map_options(options.heat_maps, card.findings);
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
                  static_cast<std::int64_t>(card.findings.size()),
                  network_options(config, device, comm));
  read_shared_network(file, config, card, comm, network);
  if (comm.rank() == 0) warn_of_weighted_loss(config);
  const LossWeights weights =
      loss_weights(LossWeighting::kNone, set.dataset.manifest, set.split);
  const double start = now_s();
  const RunContext run{config, comm, device, set.dataset, network, weights};
  const auto prediction = score_images(run, set.split);
  const double seconds = now_s() - start;
  std::map<std::size_t, HeatMapFiles> heat_maps;
  bool stopped = !prediction;
  if (!stopped && !options.heat_maps.folder.empty()) {
    auto [files, whole] = write_heat_maps(run, prediction->predictions,
                                          options.heat_maps, stop_requested);
    heat_maps = std::move(files);
    stopped = !whole;
  }
  if (stopped) {
    if (comm.rank() == 0)
      log_info("stopped on request; no scores were written");
    return static_cast<int>(ExitCode::kRequeue);
  }
  const auto& reasons = prediction->predictions.reasons;
  const bool any_scored =
      std::ranges::any_of(reasons, [](const auto& r) { return r.empty(); });
  if (comm.rank() == 0) {
    ImageScores scores =
        scores_of(set.images, prediction->predictions, card, heat_maps);
    scores.left_out = set.left_out;
    scores.seconds = seconds;
    log_info("model " + file.string());
    write(scores, options);
  }
  return static_cast<int>(any_scored ? ExitCode::kDone : ExitCode::kData);
}

}  // namespace

void add_predict(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "predict", "probabilities of images without a table or labels");
  auto options = std::make_shared<Options>();
  command
      ->add_option("model", options->model,
                   "run folder (its best checkpoint), checkpoint folder, or a "
                   "model's .safetensors file")
      ->required();
  command->add_option(
      "input", options->inputs,
      "images, folders, archives, packs, s3:// places; @FILE: a list, one path "
      "per line; -: a list on stdin");
  add_repeated_option(*command, "--list", options->lists,
                      "a list of inputs, as @FILE");
  command
      ->add_option("--out", options->out,
                   "write image, probabilities and errors to this CSV")
      ->check(in_file_system());
  add_set_option(*command, options->set, "the run's config");
  add_ranks_option(*command, options->ranks);
  add_heat_map_options(*command, options->heat_maps);
  command->add_flag("--json", options->json,
                    "one JSON object per image on stdout, and one of all "
                    "(docs/json.md)");
  command->callback([&invocation, options] {
    if (options->inputs.empty() && options->lists.empty())
      throw CLI::RequiredError("an input or --list");
    invocation.run = [&invocation, options] {
      return predict(*options, invocation);
    };
  });
}

}  // namespace chexnet
