#include "chexnet/train/trainer.hpp"

#include <ATen/ATen.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cmath>

#include "chexnet/comm/watchdog.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/pipeline.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/model/weights.hpp"
#include "chexnet/report/timeline.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/dataset.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/predict.hpp"
#include "chexnet/train/recipe.hpp"
#include "chexnet/train/run_folder.hpp"
#include "chexnet/train/split_check.hpp"
#include "chexnet/train/training_loop.hpp"

namespace chexnet {

void check_batch(const Config& config, int ranks) {
  const std::int64_t pieces = static_cast<std::int64_t>(ranks) * config.train.accumulate;
  const std::int64_t batch = config.train.batch;
  if (batch % pieces == 0) return;
  const std::int64_t next = (batch / pieces + 1) * pieces;
  throw ConfigError("[train] train.batch = " + std::to_string(batch) + " cannot be shared by " +
                    std::to_string(ranks) + " ranks x " + std::to_string(config.train.accumulate) +
                    " micro-batches. Hint: train.batch=" + std::to_string(next) +
                    ", another multiple of " + std::to_string(pieces) + ", or fewer ranks");
}

namespace {

std::string split_text(const Split& split) {
  return split.rows.empty()
             ? "none"
             : std::to_string(split.rows.size()) + " images, sha256 " + split.sha256.substr(0, 12);
}

Rows settings_table(const Config& config, const Dataset& dataset, const Network& network,
                    const std::string& weights, Communicator& comm, const Device& device,
                    const std::string& engine, const std::filesystem::path& folder) {
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
                        preprocessing.resize_kind},
          {"network", config.model.arch + ", weights " + weights},
          {"precision", precision_name(network.options().precision) +
                            (config.train.precision == "auto" ? " (auto)" : "")},
          {"global batch", std::to_string(config.train.batch) + " images on " +
                               std::to_string(comm.size()) + " ranks"},
          {"a BatchNorm sees", batchnorm_text(config, comm.size())},
          {"loss", loss_text(config.train)},
          {"optimiser", config.train.optimizer + ", schedule " + config.train.schedule},
          {"device", device.description},
          {"computed by", engine},
          {"communication", comm.description()},
          {"libraries", std::string("LibTorch ") + TORCH_VERSION},
          {"seed", std::to_string(config.run.seed)},
          {"notice", "research use, not a medical device"}};
}

// Weights before the first step: of the checkpoint, of model.weights, or drawn. Returns where they
// come from.
std::string start_weights(const Config& config, const RunFolder& folder, const Dataset& dataset,
                          Network& network, TrainStep& step, Communicator& comm) {
  Parameters& p = network.parameters();
  std::string origin;
  if (folder.checkpoint()) {
    origin = "of checkpoint " + folder.checkpoint()->filename().string();
    if (comm.rank() == 0) {
      check_same_data(*folder.checkpoint(), dataset);
      read_network(*folder.checkpoint() / "model.safetensors", config, dataset.manifest.findings,
                   p);
      read_optimizer(*folder.checkpoint(), p, step.optimizer());
    }
  } else {
    p.initialize(static_cast<std::uint64_t>(config.run.seed));
    origin = "drawn from seed " + std::to_string(config.run.seed);
    if (config.model.weights != "none") {
      origin = "from " + config.model.weights;
      if (comm.rank() == 0) {
        const auto report =
            load_weights(SafetensorsFile(std::filesystem::path(config.model.weights)),
                         config.model.weights, dataset.manifest.findings, p);
        origin += ", sha256 " + sha256_file(config.model.weights).substr(0, 12);
        if (!report.text().empty()) log_warning("[weights] " + report.text());
      }
    }
  }
  share_from_rank_0(comm, p, &step.optimizer());
  return broadcast_text(comm, origin);
}

TrainState start_state(const Config& config, const RunFolder& folder, const SummationOrder& order,
                       Communicator& comm) {
  TrainState state;
  if (folder.checkpoint()) {
    const std::string text = broadcast_text(
        comm, comm.rank() == 0 ? CheckpointStore::read_state(*folder.checkpoint()) : "");
    state = TrainState::from_json(text, folder.checkpoint()->string());
    const auto changed = [&](const char* what, const std::string& was, const std::string& is) {
      if (was != is && comm.rank() == 0)
        log_warning("[resume] " + std::string(what) + " changed from " + was + " to " + is +
                    ": the run goes on, but sums round differently, so weights will not be equal "
                    "to the last bit");
    };
    changed("number of ranks", std::to_string(state.order.ranks), std::to_string(order.ranks));
    if (comm.rank() == 0) warn_of_other_ranks(config, state.order.ranks, order.ranks);
    changed("threads a rank", std::to_string(state.order.threads), std::to_string(order.threads));
    changed("wire format", state.order.wire, order.wire);
    changed("libraries", state.order.versions, order.versions);
  }
  const double tuned_mb = state.order.bucket_mb;
  state.order = order;
  // launch.bucket_mb: auto goes on with what it chose.
  if (order.bucket_mb == 0) state.order.bucket_mb = tuned_mb;
  state.config = config_yaml(config);
  return state;
}

std::vector<SplitScores> final_evaluation(const Config& config, const Dataset& dataset,
                                          Network& network, Communicator& comm,
                                          const Device& device, const LossWeights& weights,
                                          RunFolder& folder, MetricsLog* metrics,
                                          std::int64_t step) {
  const auto best = folder.path() / "checkpoints" / "best";
  const bool has_best = any_rank(comm, comm.rank() == 0 && std::filesystem::exists(best));
  if (has_best) {
    if (comm.rank() == 0)
      read_network(best / "model.safetensors", config, dataset.manifest.findings,
                   network.parameters());
    share_from_rank_0(comm, network.parameters(), nullptr);
  }
  std::vector<SplitScores> results;
  for (const auto& name : config.eval.splits) {
    const Split& split = dataset.splits.named(name);
    if (split.rows.empty()) continue;
    const auto prediction = predict_split(config, dataset, split, network, comm, device, weights);
    Scores scores = score(prediction.predictions, config.eval.findings);
    scores.loss = prediction.loss;
    if (metrics != nullptr) {
      write_atomically(folder.path() / ("predictions_" + name + ".csv"),
                       predictions_csv(prediction.predictions));
      metrics->write(
          "final", step,
          {{"split", name},
           {"images", static_cast<std::int64_t>(scores.images)},
           {"damaged", static_cast<std::int64_t>(scores.damaged)},
           {"weights", std::string(has_best ? "best" : "last")},
           {"loss", prediction.loss},
           {"mean_auroc", scores.mean_auroc.value_or(std::numeric_limits<double>::quiet_NaN())}});
    }
    results.push_back({name, std::move(scores)});
  }
  return results;
}

// What `status` needs of a run that it sees from outside.
MetricFields start_fields(const Config& config, const Dataset& dataset, const Communicator& comm) {
  const auto images = static_cast<std::uint64_t>(dataset.splits.train.rows.size());
  return {{"ranks", static_cast<std::int64_t>(comm.size())},
          {"total_steps", total_steps(config.train, images)},
          {"batch", config.train.batch},
          {"train_images", static_cast<std::int64_t>(images)},
          {"host", host_name()},
          {"pid", static_cast<std::int64_t>(getpid())},
          {"job", batch_job(process_environment()).id}};
}

// Lends the recorder to the communicator, which outlives it.
class RecordedBy {
 public:
  RecordedBy(Communicator& comm, Recorder& recorder) : comm_(comm) {
    comm_.set_recorder(&recorder);
  }
  ~RecordedBy() { comm_.set_recorder(nullptr); }
  RecordedBy(const RecordedBy&) = delete;
  RecordedBy& operator=(const RecordedBy&) = delete;

 private:
  Communicator& comm_;
};

}  // namespace

TrainOutcome train(Config config, const TrainRequest& request, std::unique_ptr<Communicator> host) {
  check_for_training(config);
  if (config.train.batch > 0) check_batch(config, host->size());
  TrainOutcome outcome;
  const Device device = choose_device(config.launch, *host);
  const auto comm = gradient_communicator(std::move(host), device, config.launch);
  Recorder recorder;
  constexpr std::size_t kTimelineEvents = 200'000;  // a rank; some thousand steps
  if (!request.timeline.empty()) recorder.start_timeline(kTimelineEvents);
  if (device.cuda != nullptr) device.cuda->mark_ranges(recorder);
  const RecordedBy recorded(*comm, recorder);
  RunFolder folder(config, request.resume, *comm);
  const Watchdog watchdog(
      *comm, recorder,
      {config.launch.timeout_s, folder.path(), request.resume_command, device.gpu.name});
  outcome.run_folder = folder.path().string();
  const Dataset dataset = load_dataset(config, *comm);
  require_training_images(dataset.splits);
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
  bool chose_batch = false;
  if (config.train.batch < 0) {
    chose_batch = folder.batch() <= 0;
    config.train.batch =
        chose_batch ? auto_batch(config, network, *comm,
                                 static_cast<std::int64_t>(dataset.splits.train.rows.size()),
                                 available_memory_bytes())
                    : folder.batch();
    check_batch(config, comm->size());
  }
  const Wire wire = wire_of(config.launch.wire);
  network.set_recorder(&recorder);
  TrainStep step(network, *comm,
                 {config.train, weights, std::abs(config.launch.bucket_mb), wire, true, &recorder});
  const std::string origin = start_weights(config, folder, dataset, network, step, *comm);
  const std::int64_t own_batch =
      config.train.batch / (std::int64_t{comm->size()} * config.train.accumulate);
  const std::string engine = network.description(own_batch, config.data.crop);
  const SummationOrder order{
      comm->size(), network.depends_on_threads(config.data.crop) ? device.threads : 0,
      config.launch.wire,
      std::string("torch ") + TORCH_VERSION + ", " + (device.cuda ? device.gpu.name : engine),
      std::max(0.0, config.launch.bucket_mb)};
  TrainState state = start_state(config, folder, order, *comm);
  if (state.step > 0) step.loss_scale() = state.loss_scale;
  if (state.order.bucket_mb > 0) step.set_bucket_mb(state.order.bucket_mb);
  const bool resumed = state.step > 0;
  check_splits(config, dataset, *comm, device.cores, state.looked_at);

  const Rows settings =
      settings_table(config, dataset, network, origin, *comm, device, engine, folder.path());
  std::unique_ptr<MetricsLog> metrics;
  if (comm->rank() == 0) {
    log_info("chexnet-train, for research use, not a medical device\n" + aligned(settings));
    warn_of_recipe(config, comm->size(), chose_batch);
    folder.claim(config);
    write_atomically(folder.path() / "split.csv", splits_csv(dataset.manifest, dataset.splits));
    metrics = std::make_unique<MetricsLog>(folder.path(), resumed ? state.step : -1);
    metrics->write(resumed ? "restart" : "start", state.step, start_fields(config, dataset, *comm));
  }
  log_info("host and cores: " + device.description + "\n" + seat_table(device.seats));

  const double start = now_s();
  TrainingLoop loop(
      {config, dataset, network, *comm, device, folder, metrics.get(), weights, recorder}, step,
      state);
  outcome.code = loop.run();
  outcome.train_s = now_s() - start;
  outcome.step = loop.state().step;
  outcome.images_per_s = loop.images_per_s();
  if (outcome.code == ExitCode::kDone) {
    const double evaluation_start = now_s();
    outcome.results = final_evaluation(config, dataset, network, *comm, device, weights, folder,
                                       metrics.get(), outcome.step);
    outcome.evaluate_s = now_s() - evaluation_start;
    if (metrics != nullptr) metrics->write("end", outcome.step, {});
    if (comm->rank() == 0)
      write_report(folder.path(), "chexnet-train: " + config.run.name, settings, outcome.results);
  }
  if (!request.timeline.empty())
    write_timeline(*comm, recorder, clock_offset_s(*comm), request.timeline);
  auto peak = static_cast<double>(peak_rss_bytes());
  comm->all_reduce(std::span(&peak, 1), ReduceOp::kMax);
  outcome.peak_bytes = static_cast<std::uint64_t>(peak);
  return outcome;
}

}  // namespace chexnet
