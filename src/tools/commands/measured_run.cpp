#include "measured_run.hpp"

#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/gradient_communicator.hpp"
#include "chexnet/train/network_options.hpp"
#include "chexnet/train/run/config_agreement.hpp"

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
