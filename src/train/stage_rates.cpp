// What is left out, one after another; each difference is one part's cost:
//
//   whole       read + decode + copy + compute + gradients of others
//   same_batch                  copy + compute + gradients of others
//   no_copy                            compute + gradients of others   (GPU)
//   alone                       copy + compute               (several ranks)
//   load        read + decode + augment
//   load_plain  read + decode             (where something is augmented)
//   read        read
#include "chexnet/train/stage_rates.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <numeric>
#include <vector>

#include "batch_tensors.hpp"
#include "batch_upload.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/data/loader.hpp"
#include "training_stream.hpp"

namespace chexnet {
namespace {

constexpr int kBatchesInRing = 4;     // at most
constexpr double kLoadSeconds = 0.5;  // at least, or kMostBatches
constexpr int kMostBatches = 1000;
constexpr double kReadSeconds = 1, kWholeSeconds = 1;

class StageBench {
 public:
  StageBench(const RunContext& run, const StageRateOptions& options)
      : run_(run),
        options_(options),
        rows_(training_rows(run.config, run.dataset)),
        stream_(run, rows_, int64_t{options.images} * run.comm.size(), 0),
        plain_(*run.dataset.images, training_preprocessing(run.config.data),
               Augmentation::none(), 0),
        step_(run.network, run.comm, options.step),
        silent_(run.network, run.comm, options.step.without_communication()),
        entries_(static_cast<double>(options.images * run.comm.size()) *
                 static_cast<double>(run.dataset.manifest.finding_count())) {}

  StageMeasurement measure() {
    StageMeasurement out;
    StageRates& rates = out.rates;
    rates.shared_cores = run_.device.cuda == nullptr;
    rates.one_host = run_.comm.world().local_size == run_.comm.size();
    rates.over_network = run_.dataset.images->reads_over_network();
    measure_computing(rates);
    rates.workers = measure_whole(rates, out.damaged);
    measure_loading(rates);
    rates.read =
        read_rate(std::max({1, rates.workers, stream_.options.readers}));
    return out;
  }

 private:
  using Action = std::function<void()>;
  struct Part {
    const char* what;
    double* rate;
    Action action;
  };

  void show(const std::string& what) const {
    if (options_.show) options_.show(what);
  }

  // All rates with the network in them but the whole run's.
  void measure_computing(StageRates& rates) {
    Loader::Options on_this_thread = stream_.options;
    on_this_thread.workers = on_this_thread.readers = 0;
    Loader loader(run_.dataset.manifest, stream_.reader, *stream_.sampler,
                  on_this_thread, run_.device.batch_memory());
    const BatchTensors same = tensors_of(loader.next());
    std::vector<Part> parts = {{"the same batch again", &rates.same_batch,
                                [&] { train(step_, same); }}};
    BatchTensors there = same;
    if (run_.device.cuda != nullptr) {
      there.images = same.images.to(run_.device.where);
      there.labels = same.labels.to(run_.device.where);
      parts.push_back(
          {"without the copy", &rates.no_copy, [&] { train(step_, there); }});
    }
    if (run_.comm.size() > 1)
      parts.push_back({"without gradients of others", &rates.alone,
                       [&] { train(silent_, same); }});
    rates.noise = time(parts);
  }

  // By the mean of its steps: batches of a slow source come in bursts. Returns
  // how many workers the loader came to use.
  int measure_whole(StageRates& rates, int64_t& damaged) {
    Loader loader(run_.dataset.manifest, stream_.reader, *stream_.sampler,
                  stream_.options, run_.device.batch_memory());
    show("the run as configured");
    take_ready(loader);
    const int steps =
        std::max(options_.rounds,
                 std::min(kMostBatches,
                          static_cast<int>(kWholeSeconds * rates.same_batch /
                                           options_.images)));
    BatchUpload upload(run_.device.where);
    double seconds = 0;
    for (int step = -1; step < steps; ++step) {
      if (step == 0) seconds = now_s();
      show("the run as configured");
      upload.wait();
      const Batch& batch = loader.next();
      damaged += batch.damaged;
      train(step_, upload.upload(tensors_of(batch)));
    }
    if (run_.device.cuda != nullptr) run_.device.cuda->synchronize();
    seconds = now_s() - seconds;
    run_.comm.all_reduce(std::span(&seconds, 1), ReduceOp::kMax);
    rates.whole = steps * options_.images / seconds;
    return loader.stats().workers;
  }

  void train(TrainStep& step, const BatchTensors& batch) const {
    constexpr double kRate = 0;
    step.run(batch.images, batch.labels, entries_, kRate, batch.sample_weights);
  }

  // In turn, so that other load of the machine falls on all of them: each one's
  // rate by its median time, of the slowest rank. Returns the largest distance
  // between a part's quartiles, as a fraction of its median.
  double time(const std::vector<Part>& parts) const {
    std::vector<std::vector<double>> times(parts.size());
    for (int round = -1; round < options_.rounds; ++round)
      for (size_t p = 0; p < parts.size(); ++p) {
        show(parts[p].what);
        if (run_.device.cuda != nullptr) run_.device.cuda->synchronize();
        run_.comm.barrier();
        const double start = now_s();
        parts[p].action();
        if (run_.device.cuda != nullptr) run_.device.cuda->synchronize();
        if (round >= 0) times[p].push_back(now_s() - start);
      }
    double noise = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      std::array<double, 2> worst = {
          quantile(times[p], 0.5),
          quantile(times[p], 0.75) - quantile(times[p], 0.25)};
      run_.comm.all_reduce(worst, ReduceOp::kMax);
      *parts[p].rate = options_.images / worst[0];
      noise = std::max(noise, worst[1] / worst[0]);
    }
    return noise;
  }

  // Each in two halves, in turn, of which the faster counts: so a short load of
  // the machine does not look like a difference between them.
  void measure_loading(StageRates& rates) const {
    const auto add = [&](double& rate, const ImageReader& reader, int threads) {
      rate = std::max(rate, load_rate(reader, threads));
    };
    for (int half = 0; half < 2; ++half) {
      show("loading alone");
      add(rates.load, stream_.reader, rates.workers);
      if (rates.workers != 1) add(rates.load_one, stream_.reader, 1);
      if (!stream_.reader.augments()) continue;
      show("loading without augmentation");
      add(rates.load_plain, plain_, rates.workers);
    }
    if (rates.workers == 1) rates.load_one = rates.load;
  }

  // Images loaded or read before the clock starts do not count.
  void take_ready(Loader& loader) const {
    const int ahead = stream_.options.readers / options_.images + 1;
    for (int i = 0; i < kBatchesInRing + ahead; ++i) loader.next();
  }

  // Loading in whole batches, without computing.
  double load_rate(const ImageReader& reader, int threads) const {
    Loader::Options alone = stream_.options;
    alone.workers = threads;
    Loader loader(run_.dataset.manifest, reader, *stream_.sampler, alone,
                  run_.device.batch_memory());
    take_ready(loader);
    const double start = now_s();
    int batches = 0;
    const auto is_enough = [&] {
      if (batches < (options_.rounds + 1) / 2) return false;
      return now_s() - start >= kLoadSeconds || batches >= kMostBatches;
    };
    for (; !is_enough(); ++batches) loader.next();
    return batches * options_.images / (now_s() - start);
  }

  // The rate at which `threads` fetch, without decoding: the sum of their
  // rates, each from its second image on, as the first one may wait for a
  // connection.
  double read_rate(int threads) const {
    std::vector<double> rates(static_cast<size_t>(threads));
    std::atomic<uint64_t> taken = 0;
    parallel_for(rates.size(), threads, [&](size_t t) {
      FetchedImage fetched;
      const auto fetch = [&] {
        // From the end of the split: the other tests warmed up its beginning.
        const uint64_t i = taken++ % rows_.size();
        run_.dataset.images->fetch(rows_[rows_.size() - 1 - i], fetched);
      };
      fetch();
      const double start = now_s();
      double seconds = 0;
      int count = 0;
      for (; seconds < kReadSeconds; seconds = now_s() - start, ++count)
        fetch();
      rates[t] = count / seconds;
    });
    return std::accumulate(rates.begin(), rates.end(), 0.0);
  }

  const RunContext& run_;
  const StageRateOptions& options_;
  const std::vector<uint32_t> rows_;
  const TrainingStream stream_;
  const ImageReader plain_;
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
