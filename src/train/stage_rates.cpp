// What is left out, one after another; each difference is one part's cost:
//
//   whole       read + decode + copy + compute + gradients of others
//   same_batch                  copy + compute + gradients of others
//   no_copy                            compute + gradients of others   (GPU)
//   alone                       copy + compute               (several ranks)
//   load        read + decode
//   read        read
#include "chexnet/train/stage_rates.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>

#include "batch_tensors.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/data/balanced.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/pipeline.hpp"

namespace chexnet {
namespace {

constexpr int kBatchesInRing = 4;   // at most: what they hold is not measured
constexpr double kLoadSeconds = 1;  // at least, unless kMostBatches come first
constexpr int kMostBatches = 1000;
constexpr double kReadSeconds = 1;

class StageBench {
 public:
  StageBench(const RunContext& run, const StageRateOptions& options)
      : run_(run),
        options_(options),
        reader_(*run.dataset.images, training_preprocessing(run.config.data),
                augmentation_of(run.config.data), 1),
        sampler_(training_sampler(
            run.config.data, run.dataset.images->index(),
            run.dataset.splits.train.rows,
            {.draw_weights = weights_of_draw(run),
             .batch = static_cast<uint64_t>(options.images * run.comm.size()),
             .rank = run.comm.rank(),
             .world_size = run.comm.size()})),
        as_configured_(loader_options(run.config.data, options.images,
                                      *run.dataset.images, run.device.cores)),
        step_(run.network, run.comm, options.step),
        silent_(run.network, run.comm, options.step.without_communication()),
        entries_(static_cast<double>(options.images * run.comm.size()) *
                 static_cast<double>(run.dataset.manifest.finding_count())) {}

  StageMeasurement measure() {
    StageMeasurement out;
    out.rates.shared_cores = run_.device.cuda == nullptr;
    out.workers = out.rates.workers = measure_computing(out.rates);
    show("loading alone");
    out.rates.load = load_rate(out.workers);
    out.rates.load_one = out.workers == 1 ? out.rates.load : load_rate(1);
    out.rates.read = read_rate(std::max(out.workers, as_configured_.readers));
    return out;
  }

 private:
  static std::vector<double> weights_of_draw(const RunContext& run) {
    if (run.config.train.sampling == SamplingKind::kUniform) return {};
    return balanced_weights(run.dataset.manifest,
                            run.dataset.splits.train.rows);
  }
  void show(const std::string& what) const {
    if (options_.show) options_.show(what);
  }

  // All rates with the network in them. Returns how many workers the loader
  // came to use.
  int measure_computing(StageRates& rates) {
    Loader loader(run_.dataset.manifest, reader_, *sampler_, as_configured_,
                  run_.device.batch_memory());
    rates.whole = rate_of("the run as configured",
                          [&] { train(step_, tensors_of(loader.next())); });
    const BatchTensors same = tensors_of(loader.next());
    rates.same_batch =
        rate_of("the same batch again", [&] { train(step_, same); });
    if (run_.device.cuda != nullptr) {
      const BatchTensors there = {same.images.to(run_.device.where),
                                  same.labels.to(run_.device.where)};
      rates.no_copy = rate_of("without the copy", [&] { train(step_, there); });
    }
    if (run_.comm.size() > 1)
      rates.alone =
          rate_of("without gradients of others", [&] { train(silent_, same); });
    return std::max(1, loader.stats().workers);
  }

  void train(TrainStep& step, const BatchTensors& batch) const {
    constexpr double kRate = 0;
    step.run(batch.images, batch.labels, entries_, kRate, batch.sample_weights);
  }

  // By the median time of `action`, of the slowest rank.
  double rate_of(const char* what, const std::function<void()>& action) const {
    std::vector<double> times;
    for (int round = -1; round < options_.rounds; ++round) {
      show(what);
      run_.comm.barrier();
      const double start = now_s();
      action();
      if (run_.device.cuda != nullptr) run_.device.cuda->synchronize();
      if (round >= 0) times.push_back(now_s() - start);
    }
    double slowest = quantile(times, 0.5);
    run_.comm.all_reduce(std::span(&slowest, 1), ReduceOp::kMax);
    return options_.images / slowest;
  }

  // Loading in whole batches, nobody computing.
  double load_rate(int threads) const {
    Loader::Options alone = as_configured_;
    alone.workers = threads;
    Loader loader(run_.dataset.manifest, reader_, *sampler_, alone,
                  run_.device.batch_memory());
    for (int i = 0; i < kBatchesInRing; ++i) loader.next();
    const double start = now_s();
    int batches = 0;
    const auto is_enough = [&] {
      if (batches < 4 * options_.rounds) return false;
      return now_s() - start >= kLoadSeconds || batches >= kMostBatches;
    };
    for (; !is_enough(); ++batches) loader.next();
    return batches * options_.images / (now_s() - start);
  }

  // What `threads` fetch, nobody decoding.
  double read_rate(int threads) const {
    std::atomic<uint64_t> fetched_images = 0;
    const auto& rows = run_.dataset.splits.train.rows;
    const double start = now_s();
    parallel_for(static_cast<size_t>(threads), threads, [&](size_t) {
      FetchedImage fetched;
      while (now_s() - start < kReadSeconds) {
        // From the end of the split: the other tests warmed up its beginning.
        const uint64_t i = fetched_images++ % rows.size();
        run_.dataset.images->fetch(rows[rows.size() - 1 - i], fetched);
      }
    });
    return static_cast<double>(fetched_images) / (now_s() - start);
  }

  const RunContext& run_;
  const StageRateOptions& options_;
  ImageReader reader_;
  std::unique_ptr<Sampler> sampler_;
  Loader::Options as_configured_;
  TrainStep step_, silent_;
  double entries_;  // labels of the global batch
};

}  // namespace

StageMeasurement measure_stages(const RunContext& run,
                                const StageRateOptions& options) {
  assert(options.images > 0 && options.rounds > 0);
  assert(!run.dataset.splits.train.rows.empty());
  return StageBench(run, options).measure();
}

}  // namespace chexnet
