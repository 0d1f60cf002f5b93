#include "set_up.hpp"

#include <torch/headeronly/version.h>

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/pipeline.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/model/weights.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/precision.hpp"
#include "chexnet/train/run/recipe.hpp"
#include "device_deadline.hpp"
#include "device_self_test.hpp"
#include "start.hpp"

namespace chexnet {
namespace {

// On rank 0, from which the others get them: ranks that share cores would only
// wait longer for each other.
std::string fresh_weights(const Config& config,
                          const std::vector<std::string>& findings,
                          Parameters& p) {
  p.initialize(static_cast<uint64_t>(config.run.seed));
  if (config.model.starts_random())
    return "drawn from seed " + std::to_string(config.run.seed);
  const std::string& file = config.model.weights;
  std::error_code error;
  if (!std::filesystem::exists(file, error) && !error)
    throw CheckpointError(
        "[weights] {}: no such file. Hint: "
        "scripts/reference/convert_weights.py "
        "torchvision:{} {} makes it from ImageNet's weights; --set "
        "model.weights=none starts from random ones",
        file, choice_name(config.model.arch), file);
  const auto report =
      load_weights(SafetensorsFile(std::filesystem::path(file)), file, findings,
                   p, {.scale = {config.data.mean, config.data.std}});
  if (!report.read_as.empty()) log_info("[weights] " + report.read_as);
  if (const auto text = report.taken_text(); !text.empty())
    log_info("[weights] " + text);
  if (const auto text = report.left_out_text(); !text.empty())
    log_warning("[weights] " + text);
  return "from " + file + ", sha256 " + sha256_file(file).substr(0, 12);
}

// Of the checkpoint, of model.weights, or drawn. Returns where the first
// weights of the run came from. Collective.
std::string start_weights(const TrainingContext& run, const TrainState& state,
                          TrainStep& step) {
  const std::vector<std::string>& findings = run.dataset.manifest.findings;
  const auto& checkpoint = run.folder.checkpoint();
  Parameters& p = run.network.parameters();
  const bool first_rank = run.comm.rank() == 0;
  std::string origin = state.origin;
  const Profiler::Span span(&run.profiler, Phase::kWeights);
  DeviceDeadline deadline(run.device.where, run.config.launch.timeout_s,
                          "taking in the weights");
  if (!checkpoint) {
    const auto wait = deadline.wait();
    if (first_rank) origin = fresh_weights(run.config, findings, p);
    step.average().begin();
  } else if (first_rank) {
    read_network(*checkpoint / "model.safetensors", run.config, findings, p);
    const auto wait = deadline.wait();
    read_optimizer(*checkpoint, p, step.optimizer(), &step.average());
  }
  broadcast_from_rank_0(run.comm, p, &step.optimizer(), &step.average());
  return broadcast_text(run.comm, origin);
}

}  // namespace

void set_up_gpu(Device& device, const Config& config, Communicator& comm,
                Profiler& profiler) {
  if (device.cuda == nullptr) return;
  device.cuda->mark_ranges(profiler);
  device.own_kernels =
      self_test_once({choice_name(config.model.arch),
                      resolve_precision(config.train.precision, device),
                      config.launch.gradient_compression,
                      own_engine_on(device, config.train.engine),
                      config.model.sync_batchnorm && comm.size() > 1},
                     tested_device(device), comm, config.launch.timeout_s);
}

// Data that the run has read before and cannot find now went away with its
// storage, and may come back. Other ranks than the one that looked get an Error
// with its code. Nothing where the ranks are to stop.
std::optional<Dataset> load_data(const Config& config, const RunFolder& folder,
                                 Communicator& comm, StopRequest& stop) {
  try {
    return load_dataset(config, comm, [&] { return stop.asked(0); });
  } catch (const WorkStopped&) {
    return std::nullopt;
  } catch (const Error& e) {
    if (e.code() != ExitCode::kAbsent || !folder.has_seen_data()) throw;
    throw OutageError(
        "[resume] was there when the run was started, and is gone: {}",
        e.what());
  }
}

void check_inputs(const Config& config, const Dataset& dataset,
                  Communicator& comm) {
  check_packs(*dataset.images, training_preprocessing(config.data));
  check_packs(*dataset.images, evaluation_preprocessing(config.data));
  check_crops(*dataset.images, augmentation_of(config.data));
  check_scored_by(dataset.manifest, config.eval);
  check_pipeline(config.data, dataset.images->index(),
                 dataset.splits.train.rows, comm.size());
  if (comm.rank() == 0) warn_of_one_sided_findings(config, dataset);
}

RunDecisions decide(const RunContext& run, const RunFolder& folder) {
  return {.batch = choose_batch(run, folder.batch()),
          .chose_batch = !run.config.train.batch && folder.batch() <= 0};
}

std::string begin_weights(const RunContext& run) {
  Parameters& p = run.network.parameters();
  std::string origin;
  {
    DeviceDeadline deadline(run.device.where, run.config.launch.timeout_s,
                            "taking in the weights");
    const auto wait = deadline.wait();
    if (run.comm.rank() == 0)
      origin = fresh_weights(run.config, run.dataset.manifest.findings, p);
  }
  broadcast_from_rank_0(run.comm, p, nullptr);
  return origin;
}

std::string take_state(const TrainingContext& run, TrainStep& step,
                       TrainState& state) {
  const Config& config = run.config;
  state.origin = start_weights(run, state, step);
  const int64_t own_batch = run.decisions.batch / (int64_t{run.comm.size()} *
                                                   config.train.accumulate);
  std::string engine = run.network.description(own_batch, config.data.crop);
  const bool threads_matter = run.network.depends_on_threads(config.data.crop);
  const std::string computed_by =
      run.device.cuda != nullptr ? run.device.gpu.name + ", " + engine : engine;
  set_summation_order(
      state, run,
      {.ranks = run.comm.size(),
       .threads = threads_matter ? run.device.threads : 0,
       .gradient_compression = choice_name(config.launch.gradient_compression),
       .versions = std::string("torch ") + TORCH_VERSION + ", " + computed_by,
       .bucket_mb = config.launch.bucket_mb.value_or(0),
       .accumulate = config.train.accumulate});
  if (state.step > 0) step.set_loss_scale(state.loss_scale);
  if (state.order.bucket_mb > 0) step.set_bucket_mb(state.order.bucket_mb);
  return engine;
}

}  // namespace chexnet
