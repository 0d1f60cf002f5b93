#include "chexnet/train/trainer.hpp"

#include <ATen/ATen.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cassert>

#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/pipeline.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/report/timeline.hpp"
#include "chexnet/run/dataset.hpp"
#include "chexnet/run/recipe.hpp"
#include "chexnet/run/run_decisions.hpp"
#include "chexnet/run/run_folder.hpp"
#include "chexnet/run/split_check.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/final_evaluation.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/start.hpp"
#include "chexnet/train/training_loop.hpp"
#include "chexnet/watch/watchdog.hpp"

namespace chexnet {

void check_batch(const TrainConfig& config, std::int64_t batch, int ranks) {
  assert(batch > 0 && ranks > 0);
  const std::int64_t pieces = static_cast<std::int64_t>(ranks) * config.accumulate;
  if (batch % pieces == 0) return;
  const std::int64_t next = (batch / pieces + 1) * pieces;
  throw ConfigError("[train] train.batch = " + std::to_string(batch) + " cannot be shared by " +
                    std::to_string(ranks) + " ranks x " + std::to_string(config.accumulate) +
                    " micro-batches. Hint: train.batch=" + std::to_string(next) +
                    ", another multiple of " + std::to_string(pieces) + ", or fewer ranks");
}

namespace {

std::string split_text(const Split& split) {
  return split.rows.empty()
             ? "none"
             : std::to_string(split.rows.size()) + " images, sha256 " + split.sha256.substr(0, 12);
}

Rows settings_table(const Config& config, const RunDecisions& decisions, const Dataset& dataset,
                    const Network& network, const std::string& weights, Communicator& comm,
                    const Device& device, const std::string& engine,
                    const std::filesystem::path& folder) {
  const auto& preprocessing = config.data;
  return {{"run folder", folder.string()},
          {"manifest", dataset.manifest.path + " (" + std::to_string(dataset.manifest.size()) +
                           " images, sha256 " + dataset.manifest.sha256.substr(0, 12) + ")"},
          {"train", split_text(dataset.splits.train)},
          {"val", split_text(dataset.splits.val)},
          {"test", split_text(dataset.splits.test)},
          {"patients in two splits", dataset.manifest.knows_patients
                                         ? std::to_string(dataset.splits.leaked_patients)
                                         : "unknown: no patient column"},
          {"findings",
           std::to_string(dataset.manifest.finding_count()) +
               (config.eval.findings.empty() ? "" : ", scored: " + listed(config.eval.findings))},
          {"input", std::to_string(preprocessing.crop) + " px of " +
                        std::to_string(preprocessing.resize) + " px, resize " +
                        choice_name(preprocessing.resize_kind)},
          {"network", config.model.arch + ", weights " + weights},
          {"precision", std::string(choice_name(network.options().precision)) +
                            (config.train.precision ? "" : " (auto)")},
          {"global batch", std::to_string(decisions.batch) + " images on " +
                               std::to_string(comm.size()) + " ranks"},
          {"a BatchNorm sees", batchnorm_text(config, decisions.batch, comm.size())},
          {"loss", loss_text(config.train)},
          {"optimizer", std::string(choice_name(config.train.optimizer)) + ", schedule " +
                            choice_name(config.train.schedule)},
          {"device", device.description},
          {"computed by", engine},
          {"communication", comm.description()},
          {"libraries", std::string("LibTorch ") + TORCH_VERSION},
          {"seed", std::to_string(config.run.seed)},
          {"notice", "research use, not a medical device"}};
}

// What `status` needs of a run that it sees from outside.
MetricFields start_fields(const Config& config, const RunDecisions& decisions,
                          const Dataset& dataset, const Communicator& comm) {
  const auto images = static_cast<std::uint64_t>(dataset.splits.train.rows.size());
  return {{"ranks", static_cast<std::int64_t>(comm.size())},
          {"total_steps", total_steps(config.train, decisions.batch, images)},
          {"batch", decisions.batch},
          {"train_images", static_cast<std::int64_t>(images)},
          {"host", host_name()},
          {"pid", static_cast<std::int64_t>(getpid())},
          {"job", batch_job(process_environment()).id}};
}

// Rank 0, when all is done: the report, and a checkpoint that says so.
void finish_run(const TrainingLoop::Parts& parts, TrainState state, const Rows& settings,
                const std::vector<SplitScores>& results) {
  parts.metrics->write("end", state.step, {});
  write_report(parts.folder.path(), "chexnet-train: " + parts.config.run.name, settings, results);
  state.complete = true;
  parts.folder.store().replace_state(state.step, state.to_json());
}

// Lends the profiler to the communicator, which outlives it.
class RecordedBy {
 public:
  RecordedBy(Communicator& comm, Profiler& profiler) : comm_(comm) {
    comm_.set_profiler(&profiler);
  }
  ~RecordedBy() { comm_.set_profiler(nullptr); }
  RecordedBy(const RecordedBy&) = delete;
  RecordedBy& operator=(const RecordedBy&) = delete;

 private:
  Communicator& comm_;
};

// What a run has read before and cannot find now went away with its storage, and may come back.
// Others than the rank that looked hold an Error with its code.
Dataset load_data(const Config& config, const RunFolder& folder, Communicator& comm) {
  try {
    return load_dataset(config, comm);
  } catch (const Error& e) {
    if (e.code() != ExitCode::kAbsent || !folder.has_seen_data()) throw;
    throw OutageError("[resume] was there when the run was started, and is gone: " +
                      std::string(e.what()));
  }
}

// train.batch, or what an earlier start of the run chose for it, or what fits the memory.
RunDecisions decide(const Config& config, const RunFolder& folder, const Network& network,
                    const Dataset& dataset, Communicator& comm) {
  RunDecisions decisions;
  decisions.chose_batch = !config.train.batch && folder.batch() <= 0;
  if (config.train.batch)
    decisions.batch = *config.train.batch;
  else if (!decisions.chose_batch)
    decisions.batch = folder.batch();
  else
    decisions.batch = auto_batch(config, network, comm,
                                 static_cast<std::int64_t>(dataset.splits.train.rows.size()),
                                 available_memory_bytes());
  check_batch(config.train, decisions.batch, comm.size());
  return decisions;
}

}  // namespace

TrainOutcome train(const Config& config, const TrainRequest& request,
                   std::unique_ptr<Communicator> host) {
  check_for_training(config);
  if (config.train.batch) check_batch(config.train, *config.train.batch, host->size());
  TrainOutcome outcome;
  const Device device = choose_device(config.launch, *host);
  const auto comm = gradient_communicator(std::move(host), device, config.launch);
  Profiler profiler;
  if (!request.timeline.empty()) profiler.start_timeline(timeline_events(comm->size()));
  if (device.cuda != nullptr) device.cuda->mark_ranges(profiler);
  const RecordedBy recorded(*comm, profiler);
  RunFolder folder(config, request.resume, *comm);
  if (comm->rank() == 0 && request.folder_taken) request.folder_taken(folder.path());
  const Watchdog watchdog(
      *comm, profiler,
      {config.launch.timeout_s, folder.path(), request.resume_command, device.gpu.name});
  outcome.run_folder = folder.path().string();
  const Dataset dataset = load_data(config, folder, *comm);
  require_training_images(dataset.splits);
  TrainState state = start_state(config, folder, dataset, *comm);
  check_packs(*dataset.images, training_preprocessing(config.data));
  check_packs(*dataset.images, evaluation_preprocessing(config.data));
  check_crops(*dataset.images, augmentation_of(config.data));
  check_pipeline(config.data, dataset.images->index(), dataset.splits.train.rows, comm->size());

  if (comm->rank() == 0) warn_of_one_sided_findings(config, dataset);
  const LossWeights weights =
      loss_weights(config.train.loss_weights, dataset.manifest, dataset.splits.train);
  Network network(network_spec(config.model.arch),
                  static_cast<std::int64_t>(dataset.manifest.finding_count()),
                  network_options(config, device, *comm));
  const RunDecisions decisions = decide(config, folder, network, dataset, *comm);
  const Config kept = with_decisions(config, decisions);
  state.config = config_yaml(kept);
  if (nothing_left(state, config, decisions.batch, training_rows(config, dataset).size())) {
    outcome.was_complete = true;
    outcome.step = state.step;
    return outcome;
  }
  state.complete = false;
  network.set_profiler(&profiler);
  TrainStep step(network, *comm, step_options(config, weights, &profiler));
  state.origin = start_weights(config, folder, state, dataset, network, step, *comm);
  const std::int64_t own_batch =
      decisions.batch / (std::int64_t{comm->size()} * config.train.accumulate);
  const std::string engine = network.description(own_batch, config.data.crop);
  const SummationOrder order{
      comm->size(), network.depends_on_threads(config.data.crop) ? device.threads : 0,
      choice_name(config.launch.gradient_compression),
      std::string("torch ") + TORCH_VERSION + ", " + (device.cuda ? device.gpu.name : engine),
      config.launch.bucket_mb.value_or(0)};
  set_summation_order(state, order, config, decisions.batch, *comm);
  if (state.step > 0) step.loss_scale() = state.loss_scale;
  if (state.order.bucket_mb > 0) step.set_bucket_mb(state.order.bucket_mb);
  StopRequest stop(config, folder, comm->rank() == 0);
  const auto asked = [&] { return stop.asked(0); };
  if (!check_splits(config, dataset, *comm, device.cores, asked, state.looked_at)) {
    outcome.code = stop.stopped_before_training();
    outcome.step = state.step;
    return outcome;
  }

  const auto resumed = folder.checkpoint();
  const std::string weights_text =
      state.origin +
      (resumed ? "; resumed from checkpoint " + resumed->filename().string() : std::string());
  const Rows settings = settings_table(config, decisions, dataset, network, weights_text, *comm,
                                       device, engine, folder.path());
  std::unique_ptr<MetricsLog> metrics;
  if (comm->rank() == 0) {
    log_info("chexnet-train, for research use, not a medical device\n" + aligned(settings));
    warn_of_recipe(config, decisions, comm->size());
    folder.claim(kept);
    write_atomically(folder.path() / "split.csv", splits_csv(dataset.manifest, dataset.splits));
    metrics = std::make_unique<MetricsLog>(folder.path(),
                                           MetricsLog::Start{state.step, state.evaluation_due});
    metrics->write(resumed ? "restart" : "start", state.step,
                   start_fields(config, decisions, dataset, *comm));
  }
  log_info("host and cores: " + device.description + "\n" + placement_table(device.placements));

  const double start = now_s();
  stop.training_begins();
  const TrainingLoop::Parts parts{config, decisions,     dataset, network,  *comm, device,
                                  folder, metrics.get(), weights, profiler, stop};
  TrainingLoop loop(parts, step, state);
  outcome.code = loop.run();
  outcome.train_s = now_s() - start;
  outcome.step = loop.state().step;
  outcome.images_per_s = loop.images_per_s();
  if (outcome.code == ExitCode::kDone) {
    const double evaluation_start = now_s();
    const auto results = final_evaluation(parts, loop.state());
    outcome.evaluate_s = now_s() - evaluation_start;
    if (!results) {
      outcome.code = stop.stopped(outcome.step, metrics.get());
    } else {
      outcome.results = *results;
      if (comm->rank() == 0) finish_run(parts, loop.state(), settings, *results);
    }
  }
  if (!request.timeline.empty())
    write_timeline(*comm, profiler, clock_offset_s(*comm), request.timeline);
  auto peak = static_cast<double>(peak_rss_bytes());
  comm->all_reduce(std::span(&peak, 1), ReduceOp::kMax);
  outcome.peak_bytes = static_cast<std::uint64_t>(peak);
  return outcome;
}

}  // namespace chexnet
