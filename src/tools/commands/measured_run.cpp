#include "measured_run.hpp"

#include <CLI/CLI.hpp>

#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/gradient_communicator.hpp"
#include "chexnet/train/precision.hpp"
#include "chexnet/train/run/config_agreement.hpp"
#include "chexnet/train/trainer.hpp"

namespace chexnet {
namespace {

Device device_of(const Config& config, RankWorld& world) {
  check_same_config(world.comm(), config);
  return choose_device(config.launch, world.comm());
}

Dataset training_data(const Config& config, Communicator& comm) {
  Dataset dataset = load_dataset(config, comm);
  require_training_images(dataset.splits);
  return dataset;
}

}  // namespace

void add_measured_options(CLI::App& command, MeasuredOptions& options) {
  command.add_option("config", options.files, "YAML files, as for train")
      ->required();
  add_set_option(command, options.set, "the files");
  add_ranks_option(command, options.ranks);
}

Config measured_config(const MeasuredOptions& options, Invocation& invocation) {
  Config config =
      load_config({options.files.begin(), options.files.end()}, options.set,
                  &invocation.variables, [&options](Config& c) {
                    if (options.ranks > 0) c.launch.ranks = options.ranks;
                  });
  check_run(config);
  return config;
}

MeasuredRun::MeasuredRun(const Config& config, RankWorld& world)
    : device_(device_of(config, world)),
      comm_(gradient_communicator(world.take_comm(), device_, config.launch)),
      dataset_(training_data(config, *comm_)),
      network_(network_spec(config.model.arch),
               static_cast<int64_t>(dataset_.manifest.finding_count()),
               network_options(config, device_, *comm_)),
      weights_(
          loss_weights(config.train, dataset_.manifest, dataset_.splits.train)),
      context_{config, *comm_, device_, dataset_, network_, weights_},
      batch_(0) {
  network_.parameters().initialize(1);
  batch_ = choose_batch(context_, 0);
}

}  // namespace chexnet
