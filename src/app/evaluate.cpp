#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/app/scores_output.hpp"
#include "chexnet/checkpoint/store.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/predict.hpp"
#include "chexnet/train/train_state.hpp"

namespace chexnet {
namespace {

struct Options {
  std::string checkpoint, split = "test", predictions, manifest, format = "nih", out;
  std::vector<std::string> set;
  int ranks = 0;
  bool json = false;
};

void print(const SplitScores& result, const std::string& sha256, bool json) {
  if (json)
    std::cout << scores_json(result, sha256) << std::endl;
  else
    std::cout << scores_text(result) << std::endl;
}

int evaluate_table(const Options& options) {
  Predictions predictions;
  if (options.manifest.empty()) {
    predictions = read_predictions(options.predictions, nullptr);
  } else {
    Config config = load_config({}, options.set);
    config.data.manifest.path = options.manifest;
    config.data.manifest.format = options.format;
    const Manifest manifest = read_manifest(config.data);
    predictions = read_predictions(options.predictions, &manifest);
  }
  print({options.predictions, score(predictions)}, "", options.json);
  return 0;
}

int evaluate_checkpoint(const Options& options, Invocation& invocation) {
  check_output(options.out);
  const auto folder = resolve_checkpoint(options.checkpoint);
  const TrainState state =
      TrainState::from_json(CheckpointStore::read_state(folder), folder.string());
  // The run's own config, then what the user overrides (other images, other lists).
  const auto kept = folder / "state.json";
  Config config = load_config_text(kept.string(), state.config, options.set);
  if (options.ranks > 0) config.launch.ranks = options.ranks;
  Launch launch = enter_world(config.launch, invocation);
  if (launch.comm == nullptr) return launch.parent_exit_code;
  Communicator& comm = *launch.comm;
  const Device device = choose_device(config.launch, comm);
  const Dataset dataset = load_dataset(config.data, comm);
  const Split& split = dataset.splits.named(options.split);
  if (split.rows.empty())
    throw DataError("[evaluate] the " + options.split +
                    " split has no images. Hint: --split val, or set data." + options.split +
                    "_list");
  Network network(network_spec(config.model.arch),
                  static_cast<std::int64_t>(dataset.manifest.finding_count()),
                  network_options(config, device, comm));
  if (comm.rank() == 0)
    read_network(folder, config, dataset.manifest.findings, network.parameters());
  share_from_rank_0(comm, network.parameters(), nullptr);
  const LossWeights weights =
      loss_weights(config.train.loss_weights, dataset.manifest, dataset.splits.train);
  const auto prediction =
      predict_split(config, dataset, split, network, comm, device, weights, stop_requested);
  if (!prediction) {
    if (comm.rank() == 0) log_info("stopped on request; nothing was written");
    invocation.abort = nullptr;
    return static_cast<int>(ExitCode::kRequeue);
  }
  if (comm.rank() == 0) {
    log_info("checkpoint " + folder.string() + ", step " + std::to_string(state.step));
    if (!options.out.empty())
      write_atomically(options.out, predictions_csv(prediction->predictions));
    Scores scores = score(prediction->predictions);
    scores.loss = prediction->loss;
    print({options.split, std::move(scores)}, split.sha256, options.json);
  }
  invocation.abort = nullptr;
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "evaluate", "AUROC of a run, a checkpoint, or a table of anybody's probabilities");
  auto options = std::make_shared<Options>();
  auto* checkpoint = command->add_option("checkpoint", options->checkpoint,
                                         "run folder (its best checkpoint) or checkpoint folder");
  auto* table =
      command->add_option("--predictions", options->predictions,
                          "CSV with an image column and a probability column per finding");
  checkpoint->excludes(table);
  command
      ->add_option("--manifest", options->manifest, "with --predictions: the table with the labels")
      ->needs(table);
  command->add_option("--format", options->format, "with --manifest: nih, chexpert or csv")
      ->needs(table);
  command->add_option("--split", options->split, "train, val or test")->excludes(table);
  command->add_option("--out", options->out, "write image, labels and probabilities to this CSV")
      ->excludes(table);
  add_set_option(*command, options->set, "the run's config");
  command->add_option("--ranks", options->ranks, "ranks to start")->check(CLI::Range(1, 1000000));
  command->add_flag("--json", options->json, "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    if (options->checkpoint.empty() == options->predictions.empty())
      throw CLI::RequiredError("a run or checkpoint, or --predictions,");
    invocation.run = [&invocation, options] {
      return options->predictions.empty() ? evaluate_checkpoint(*options, invocation)
                                          : evaluate_table(*options);
    };
  });
}

}  // namespace chexnet
