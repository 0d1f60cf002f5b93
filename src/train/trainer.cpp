// Set-up is a chain: each thing needs those before it, and lives as long as
// those after it.
//
//   device -> communicator -> run folder (locked) -> watchdog -> data set
//   -> state of the checkpoint -> network -> batch -> step with weights
//   -> settings told, run claimed -> loop -> evaluation
//
// Nothing is written into the folder that would make it a run before data and
// weights proved good (begin_records): a start that failed refuses nothing to
// the next.
#include "chexnet/train/trainer.hpp"

#include <ATen/ATen.h>
#include <torch/headeronly/version.h>

#include <cassert>
#include <utility>

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/comm/watch/watchdog.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/pipeline.hpp"
#include "chexnet/data/split_table.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/html_report.hpp"
#include "chexnet/report/model_card.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/report/tensorboard_scores.hpp"
#include "chexnet/report/timeline.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/gradient_communicator.hpp"
#include "chexnet/train/network_options.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/run/config_agreement.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/recipe.hpp"
#include "chexnet/train/run/run_decisions.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "chexnet/train/run/schedule.hpp"
#include "chexnet/train/run/split_check.hpp"
#include "chexnet/train/run/stop_request.hpp"
#include "final_evaluation.hpp"
#include "first_contact.hpp"
#include "settings.hpp"
#include "start.hpp"
#include "training_loop.hpp"

namespace chexnet {

void check_batch(const TrainConfig& config, int64_t batch, int ranks) {
  assert(batch > 0 && ranks > 0);
  const int64_t pieces = static_cast<int64_t>(ranks) * config.accumulate;
  if (batch % pieces == 0) return;
  const int64_t next = (batch / pieces + 1) * pieces;
  throw ConfigError(
      "[train] train.batch = " + std::to_string(batch) +
      " cannot be shared by " + std::to_string(ranks) + " ranks x " +
      std::to_string(config.accumulate) +
      " micro-batches. Hint: train.batch=" + std::to_string(next) +
      ", another multiple of " + std::to_string(pieces) + ", or fewer ranks");
}

namespace {

// Rank 0, when all is done: the report, and a checkpoint that says so.
void finish_run(const TrainingLoop::Parts& parts, TrainState state,
                const Rows& settings, const FinalScores& finals) {
  warn_of_missing_images(parts.dataset);
  parts.folder.require_lock();
  const auto& folder = parts.folder.path();
  RunFacts facts = run_facts(parts, settings);
  facts.scored = finals.best ? "best" : "last";
  facts.scored_step = finals.step;
  facts.changes = state.changes;
  write_results(folder, facts, finals.splits);
  write_report(folder);
  TensorBoardLog& tensorboard = parts.metrics->tensorboard();
  tensorboard.text("run/model_card", state.step, model_card(folder));
  show_examples(tensorboard, state.step, folder);
  // Behind what may fail here: an error behind it is one of a later start.
  MetricFields end;
  if (const auto failed = parts.folder.failed_commands())
    end.emplace_back("after_checkpoint_failures", *failed);
  parts.metrics->write("end", state.step, end);
  parts.metrics->sync();
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

// What a run has read before and cannot find now went away with its storage,
// and may come back. Others than the rank that looked hold an Error with its
// code. Nothing where the ranks are asked to stop.
std::optional<Dataset> load_data(const Config& config, const RunFolder& folder,
                                 Communicator& comm, StopRequest& stop) {
  try {
    return load_dataset(config, comm, [&] { return stop.asked(0); });
  } catch (const WorkStopped&) {
    return std::nullopt;
  } catch (const Error& e) {
    if (e.code() != ExitCode::kAbsent || !folder.has_seen_data()) throw;
    throw OutageError(
        "[resume] was there when the run was started, and is gone: " +
        std::string(e.what()));
  }
}

// train.batch, or what an earlier start of the run chose for it, or what fits
// the memory.
RunDecisions decide(const RunContext& run, const RunFolder& folder) {
  const Config& config = run.config;
  const auto images =
      static_cast<int64_t>(run.dataset.splits.train.rows.size());
  RunDecisions decisions;
  decisions.chose_batch = !config.train.batch && folder.batch() <= 0;
  if (config.train.batch)
    decisions.batch = *config.train.batch;
  else if (!decisions.chose_batch)
    decisions.batch = folder.batch();
  else
    decisions.batch =
        auto_batch(config, run.network, run.comm,
                   {images, available_memory_bytes(), run.device.cuda});
  check_batch(config.train, decisions.batch, run.comm.size());
  return decisions;
}

// Whether this config can read what these data are, before hours are spent on
// them.
void check_inputs(const Config& config, const Dataset& dataset,
                  Communicator& comm) {
  check_packs(*dataset.images, training_preprocessing(config.data));
  check_packs(*dataset.images, evaluation_preprocessing(config.data));
  check_crops(*dataset.images, augmentation_of(config.data));
  check_pipeline(config.data, dataset.images->index(),
                 dataset.splits.train.rows, comm.size());
  if (comm.rank() == 0) warn_of_one_sided_findings(config, dataset);
}

// Weights, optimizer and scale of this start, and how its sums are ordered.
// Returns what computes.
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

std::string weights_text(const TrainState& state, const RunFolder& folder) {
  if (!folder.checkpoint()) return state.origin;
  return state.origin + "; resumed from checkpoint " +
         folder.checkpoint()->filename().string();
}

// Rank 0: from here on the folder holds a run, and the run writes its metrics.
std::unique_ptr<MetricsLog> begin_records(const TrainingContext& run,
                                          const TrainState& state,
                                          const Rows& settings) {
  log_info("chexnet-train, for research use, not a medical device\n" +
           aligned(settings));
  warn_of_recipe(run.config, run.decisions, run.comm.size());
  const std::filesystem::path list = run.folder.path() / "split.csv";
  const PatientIds ids = ids_for(run.config, list);  // a bad key leaves no run
  std::unique_ptr<PrometheusFile> prometheus;
  if (!run.config.run.prometheus.empty())
    prometheus =
        std::make_unique<PrometheusFile>(run.config.run, run.folder.path());
  run.folder.require_lock();
  run.folder.claim(with_decisions(run.config, run.decisions));
  write_splits_csv(list,
                   splits_csv(run.dataset.manifest, run.dataset.splits, ids));
  auto metrics = std::make_unique<MetricsLog>(
      run.folder.path(), MetricsLog::Start{state.step, state.evaluation_due});
  metrics->show_in(std::move(prometheus));
  metrics->tensorboard().text("run/settings", state.step,
                              markdown_table(settings));
  metrics->write(run.folder.checkpoint() ? "restart" : "start", state.step,
                 start_fields(run));
  return metrics;
}

// Steps, then the scores of the best weights.
TrainOutcome train_and_score(const TrainingLoop::Parts& parts, TrainStep& step,
                             const TrainState& state, const Rows& settings) {
  TrainOutcome outcome;
  const double start = now_s();
  TrainingLoop loop(parts, step, state);
  outcome.code = loop.run();
  outcome.train_s = now_s() - start;
  outcome.step = loop.state().step;
  outcome.images_per_s = loop.images_per_s();
  if (outcome.code != ExitCode::kDone) return outcome;

  // Training is over: what is scored and reported are the averaged weights.
  step.average().swap();
  const double evaluation_start = now_s();
  const auto finals = final_evaluation(parts, loop.state());
  outcome.evaluate_s = now_s() - evaluation_start;
  if (!finals) {
    outcome.code = parts.stop.stopped(outcome.step, parts.metrics);
    return outcome;
  }
  outcome.results = finals->splits;
  if (parts.comm.rank() == 0)
    finish_run(parts, loop.state(), settings, *finals);
  return outcome;
}

// One value has a variance of 0, and running variances of 0 make every
// evaluation overflow. PyTorch refuses to train on it, too.
void check_batchnorm_values(const Config& config, int64_t batch, int ranks) {
  if (config.model.freeze_backbone) return;
  const int64_t side = last_map_side(network_spec(config.model.arch),
                                     static_cast<int>(config.data.crop));
  if (side * side * images_per_batchnorm(config, batch, ranks) > 1) return;
  throw ConfigError(
      "[train] data.crop = " + std::to_string(config.data.crop) +
      " leaves one pixel of an image, and each BatchNorm sees one image: it "
      "has one value per channel, and no variance. Hint: a larger data.crop, "
      "train.batch = " +
      std::to_string(int64_t{2} * ranks * config.train.accumulate) +
      " or more, or model.sync_batchnorm=true on several ranks");
}

// A disk that is full, or storage that does not answer, keeps nobody from going
// on later. Others than this run's records are of another run.
[[noreturn]] void rethrow_with_way_on(const Error& error,
                                      const RunFolder& folder,
                                      const std::string& resume_command) {
  const bool may_go_on = error.code() == ExitCode::kCheckpoint ||
                         error.code() == ExitCode::kOutage;
  if (!may_go_on || !other_owner(folder.path()).empty()) throw;
  PostMortem report;
  report.what = error.what();
  report.checkpoint = last_checkpoint(folder.path());
  report.resume = resume_command;
  throw Error(error.code(), report.sentence());
}

// The run on data that were read: from its network to its report.
TrainOutcome train_on(const RunContext& run, RunFolder& folder,
                      StopRequest& stop, Profiler& profiler, TrainState state,
                      const std::string& resume_command) {
  const Config& config = run.config;
  const RunDecisions decisions = decide(run, folder);
  check_batchnorm_values(config, decisions.batch, run.comm.size());
  state.config = config_yaml(with_decisions(config, decisions));
  TrainOutcome outcome;
  outcome.step = state.step;
  const auto images = training_rows(config, run.dataset).size();
  if (nothing_left(state, config, decisions.batch, images)) {
    outcome.was_complete = true;
    return outcome;
  }
  state.complete = false;
  run.network.set_profiler(&profiler);
  TrainStep step(run.network, run.comm,
                 step_options(config, run.weights, &profiler));
  const TrainingContext training{run, decisions, folder, profiler};
  const std::string engine = take_state(training, step, state);

  const auto looked_at = check_splits(config, run.dataset, run.comm,
                                      {.looked_at = state.looked_at,
                                       .threads = run.device.cores,
                                       .on_host = run.device.where.is_cpu(),
                                       .stop = [&] { return stop.asked(0); }});
  if (!looked_at) {
    outcome.code = stop.stopped_before_training();
    return outcome;
  }
  state.looked_at = *looked_at;

  const Rows settings =
      settings_table(training, weights_text(state, folder), engine);
  std::unique_ptr<MetricsLog> metrics;
  if (run.comm.rank() == 0) metrics = begin_records(training, state, settings);
  log_info("host and cores: " + run.device.description + "\n" +
           placement_table(run.device.placements));
  try {
    return train_and_score({training, metrics.get(), stop}, step, state,
                           settings);
  } catch (const Error& e) {
    rethrow_with_way_on(e, folder, resume_command);
  }
}

// Of all ranks: of their GPUs' memory, or of the host's. Collective.
uint64_t largest_peak_bytes(CudaLibrary* cuda, Communicator& comm) {
  auto peak = static_cast<double>(cuda ? cuda->peak_bytes() : peak_rss_bytes());
  comm.all_reduce(std::span(&peak, 1), ReduceOp::kMax);
  return static_cast<uint64_t>(peak);
}

}  // namespace

TrainOutcome train(const Config& config, const TrainRequest& request,
                   std::unique_ptr<Communicator> host) {
  check_same_config(*host, config);
  check_for_training(config);
  if (config.train.batch)
    check_batch(config.train, *config.train.batch, host->size());
  Device device = choose_device(config.launch, *host);
  const auto comm =
      gradient_communicator(std::move(host), device, config.launch);
  Profiler profiler;
  if (!request.timeline.empty())
    profiler.start_timeline(timeline_events(comm->size()));
  if (device.cuda != nullptr) {
    device.cuda->mark_ranges(profiler);
    device.own_kernels =
        check_first_contact({choice_name(config.model.arch),
                             resolve_precision(config.train.precision, device),
                             config.launch.gradient_compression,
                             own_engine_on(device, config.train.engine),
                             config.model.sync_batchnorm && comm->size() > 1},
                            contact_of(device), *comm, config.launch.timeout_s);
  }
  const RecordedBy recorded(*comm, profiler);

  RunFolder folder(config, request.resume, *comm);
  if (comm->rank() == 0 && request.folder_taken)
    request.folder_taken(folder.path());
  const Watchdog watchdog(*comm, profiler,
                          {config.launch.timeout_s, folder.path(),
                           request.resume_command, device.gpu.name});
  StopRequest stop(config, folder, comm->rank() == 0);
  const auto dataset = load_data(config, folder, *comm, stop);
  if (!dataset)
    return {.code = stop.stopped_before_training(),
            .run_folder = {},
            .results = {}};
  require_training_images(dataset->splits);
  const TrainState state = start_state(config, folder, *dataset, *comm);
  check_inputs(config, *dataset, *comm);

  const LossWeights weights = loss_weights(
      config.train.class_weights, dataset->manifest, dataset->splits.train);
  Network network(network_spec(config.model.arch),
                  static_cast<int64_t>(dataset->manifest.finding_count()),
                  network_options(config, device, *comm));
  TrainOutcome outcome =
      train_on({config, *comm, device, *dataset, network, weights}, folder,
               stop, profiler, state, request.resume_command);
  outcome.run_folder = folder.path().string();
  if (outcome.train_s <= 0) return outcome;  // the same on all ranks
  folder.finish_commands(
      *comm, [&stop](double waited_s) { return stop.may_wait(waited_s); });
  outcome.failed_commands = folder.failed_commands();
  if (!request.timeline.empty())
    write_timeline(*comm, profiler, clock_offset_s(*comm), request.timeline);
  outcome.on_gpus = device.cuda != nullptr;
  outcome.peak_bytes = largest_peak_bytes(device.cuda, *comm);
  return outcome;
}

}  // namespace chexnet
