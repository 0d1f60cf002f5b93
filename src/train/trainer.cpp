// Set-up is a chain: each thing needs those before it, and lives as long as
// those after it.
//
//   device -> communicator -> run folder (locked) -> watchdog -> data set
//   -> state of the checkpoint -> network -> batch -> step with weights
//   -> settings told, run claimed -> loop -> evaluation -> report
//
// Device, data, batch and weights: set_up.hpp; what a checkpoint adds:
// start.hpp; what the folder gets before the loop and after it: records.hpp.
//
// Before data and weights proved good (begin_records) no file makes the folder
// a run: a failed start does not block the next.
#include "chexnet/train/trainer.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/comm/watch/watchdog.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/timeline.hpp"
#include "chexnet/train/gradient_communicator.hpp"
#include "chexnet/train/precision.hpp"
#include "chexnet/train/run/config_agreement.hpp"
#include "chexnet/train/run/split_check.hpp"
#include "records.hpp"
#include "set_up.hpp"
#include "settings.hpp"
#include "start.hpp"

namespace chexnet {
namespace {

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

// Steps, then the scores of the best weights.
TrainOutcome train_and_score(const TrainingLoop::Parts& parts, TrainStep& step,
                             const TrainState& state, const Rows& settings) {
  TrainOutcome outcome;
  const double start = now_s();
  TrainingLoop loop(parts, step, state);
  outcome.code = loop.run();
  outcome.train_s = now_s() - start;
  step.end_recordings();  // the evaluation may need their memory
  outcome.step = loop.state().step;
  outcome.images_per_s = loop.images_per_s();
  outcome.overlap = loop.overlap();
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
  const Profiler::Span writing(&parts.profiler, Phase::kResults);
  if (parts.comm.rank() == 0)
    finish_records(parts, loop.state(), settings, *finals, outcome.overlap);
  return outcome;
}

// A full disk, or storage that does not answer, does not keep anybody from
// going on later. Where another process has the folder, it has no records of
// this run.
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
                      StopRequest& stop, TimelineRecorder& timeline,
                      Profiler& profiler, TrainState state,
                      const std::string& resume_command) {
  const Config& config = run.config;
  std::optional<Profiler::Span> set_up(std::in_place, &profiler, Phase::kSetUp);
  const RunDecisions decisions = decide(run, folder);
  state.config = config_yaml(with_decisions(config, decisions));
  TrainOutcome outcome;
  outcome.step = state.step;
  const auto images = training_rows(config, run.dataset).size();
  if (nothing_left(state, config, decisions.batch, images)) {
    outcome.was_complete = true;
    outcome.lost = state.lost;
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

  const Rows settings = settings_table(training, state, engine);
  std::unique_ptr<MetricsLog> metrics;
  if (run.comm.rank() == 0) metrics = begin_records(training, state, settings);
  log_info("host and cores: " + run.device.description + "\n" +
           placement_table(run.device.placements));
  set_up.reset();
  try {
    return train_and_score({training, metrics.get(), stop, timeline}, step,
                           state, settings);
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

// Of a run that the watchdog ends, or an error: the other ranks may be gone.
void write_last_spans(int rank, const Profiler& profiler, const PhaseSlot* now,
                      const std::filesystem::path& run_folder) {
  const auto recording = profiler.recording();
  if (!recording) return;
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "timeline-rank-%03d.json", rank);
  write_own_timeline(rank, *recording, now, run_folder / name.data());
}

// An error here must not hide the one that ended the run.
void write_spans_of_error(int rank, const Profiler& profiler,
                          const std::filesystem::path& run_folder) {
  try {
    write_last_spans(rank, profiler, nullptr, run_folder);
  } catch (const Error& e) {
    log_warning(e.what());
  }
}

}  // namespace

TrainOutcome train(const Config& config, const TrainRequest& request,
                   std::unique_ptr<Communicator> host) {
  check_same_config(*host, config);
  check_for_training(config);
  if (config.train.batch)
    check_batch(config.train, *config.train.batch, host->size());
  Device device = choose_device(config.launch, *host);
  const auto comm = gradient_communicator(std::move(host), device,
                                          config.launch, &device.transports);
  Profiler profiler;
  TimelineRecorder timeline(*comm, profiler, request.timeline,
                            run_folder_of(config));
  set_up_gpu(device, config, *comm, profiler);
  const RecordedBy recorded(*comm, profiler);

  RunFolder folder(config, request.resume, *comm);
  if (comm->rank() == 0 && request.folder_taken)
    request.folder_taken(folder.path());
  const Watchdog watchdog(
      *comm, profiler,
      {config.launch.timeout_s, folder.path(), request.resume_command,
       device.gpu.name, [&, rank = comm->rank()](const PhaseSlot& now) {
         write_last_spans(rank, profiler, &now, folder.path());
       }});
  std::optional<Profiler::Span> set_up(std::in_place, &profiler, Phase::kSetUp);
  StopRequest stop(config, folder, comm->rank() == 0);
  const auto dataset = load_data(config, folder, *comm, stop);
  if (!dataset)
    return {.code = stop.stopped_before_training(),
            .run_folder = {},
            .results = {}};
  require_training_images(dataset->splits);
  const TrainState state = start_state(config, folder, *dataset, *comm);
  check_inputs(config, *dataset, *comm);

  const LossWeights weights =
      loss_weights(config.train, dataset->manifest, dataset->splits.train);
  Network network(network_spec(config.model.arch),
                  static_cast<int64_t>(dataset->manifest.finding_count()),
                  network_options(config, device, *comm));
  set_up.reset();
  TrainOutcome outcome = [&] {
    try {
      return train_on({config, *comm, device, *dataset, network, weights},
                      folder, stop, timeline, profiler, state,
                      request.resume_command);
    } catch (const Error&) {
      write_spans_of_error(comm->rank(), profiler, folder.path());
      throw;
    }
  }();
  outcome.run_folder = folder.path().string();
  if (outcome.train_s <= 0) {  // the same on all ranks
    if (!request.timeline.file.empty() && comm->rank() == 0)
      log_warning("[timeline] " + request.timeline.file.string() +
                  ": not written, for this start made no step");
    return outcome;
  }
  folder.finish_commands(
      *comm, [&stop](double waited_s) { return stop.may_wait(waited_s); });
  outcome.failed_commands = folder.failed_commands();
  timeline.finish();
  outcome.on_gpus = device.cuda != nullptr;
  outcome.peak_bytes = largest_peak_bytes(device.cuda, *comm);
  return outcome;
}

}  // namespace chexnet
