// Decoded batches ahead of the training thread. A fixed ring of batches
// circulates: free -> filling
// -> ready -> in use; its memory is taken once. Worker threads take tickets
// (one per sample), so which thread decodes what changes nothing: sample t goes
// to slot t of batch t / n.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "chexnet/core/recording.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/read_ahead.hpp"
#include "chexnet/data/stream.hpp"

namespace chexnet {

struct Batch {
  int size = 0;                       // samples
  std::span<uint8_t> images;          // [size, 1, S, S]
  std::vector<float> labels;          // [size, K], NaN = not labeled
  std::vector<float> sample_weights;  // [size] of the loss; empty = all 1
  std::vector<Sample> samples;        // [size]
  // [size]; not empty: damaged, its labels are NaN and pixels 0
  std::vector<std::string> errors;
  // [size]; what is odd (picture_note.hpp), where the options ask for it
  std::vector<std::string> notes;
  int damaged = 0;                  // of this batch
  std::string first_error() const;  // empty when none is damaged
};

// One consumer. next() and the destructor belong to the thread that made the
// loader.
class Loader {
 public:
  struct Options {
    int batch = 1;  // samples a batch
    // 0 = decode in next(); none: as it takes, up to max_workers
    std::optional<int> workers = 1;
    // Batches ahead; none: as it takes, up to kMostPrefetch.
    std::optional<int> prefetch = 3;
    // Reads in flight ahead of the workers; 0 = workers read themselves.
    int readers = 0;
    int max_workers = 1;
    bool absent_is_damage = false;  // one that cannot be read ends nothing
    bool notes = false;             // Batch::notes are made
  };
  // The references must outlive the loader. Image memory comes from `memory`
  // (pinned when a GPU reads it).
  Loader(const Manifest& manifest, const ImageReader& reader,
         const Sampler& sampler, Options options,
         std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, in order; valid until the call after. Rethrows a worker's
  // absence or outage; damage (DataError) is part of a batch.
  const Batch& next();
  // The same, but null once `stop` returns true; calls it at first and while no
  // batch is ready, so a store that does not answer holds up no stop.
  const Batch* next_unless(const std::function<bool()>& stop);
  struct Stats {
    double wait_s = 0;  // the consumer's, in next()
    // Calls of next() that found no batch ready and waited over 1 ms.
    uint64_t stalls = 0;
    int workers = 0, prefetch = 0;  // now
    // The time that the batches of next() would have taken if no worker had
    // ever waited for a free slot: for each batch, the seconds from taking up
    // an image to its end (reading, or waiting for a reader; decoding;
    // augmenting), summed over its images, by the number of workers.
    double loading_s = 0;
    // The part of it that the consumer waited for. A wait may be longer: for a
    // core, or for the workers' start.
    double exposed_s = 0;
  };
  Stats stats() const;
  double wait_s() const { return wait_s_; }
  // Where the spans of workers and readers go from now on; null: nowhere.
  void record(const std::shared_ptr<Recording>& recording);

 private:
  struct Slot {
    Batch batch;
    int missing = 0;     // samples not yet decoded; the batch is ready at 0
    double begun_s = 0;  // when its first sample was taken up
    double made_s = 0;   // how long it took from there
    double work_s = 0;   // the sum over its samples
  };
  // Memory that a worker keeps from sample to sample.
  struct Scratch {
    ImageReader::Scratch reader;
    std::vector<uint32_t> discarded;  // rows
    std::vector<uint8_t> other;       // [S, S]
  };
  void work(int worker, const std::stop_token& stop);
  void fill(uint64_t ticket, Scratch& scratch, const std::stop_token& stop);
  const FetchedImage* read_sample(const Sample& sample, uint64_t ticket,
                                  uint8_t* image, Scratch& scratch,
                                  const std::stop_token& stop);
  void mix_partner(const Sample& sample, Batch& batch, size_t index,
                   Scratch& scratch, const std::stop_token& stop) const;
  void adapt(double now, double waited);
  void adapt_depth(double elapsed);
  void start_worker();
  void discard(uint64_t ticket, Scratch& scratch,
               const std::stop_token& stop) const;
  void prepare(Slot& slot) const;
  void count_loading(double loading_s, double waited_s);
  void free_last();
  bool wait_for(const Slot& slot, const std::function<bool()>& stop);
  Slot& slot_of(uint64_t batch) { return slots_[batch % slots_.size()]; }

  const Manifest& manifest_;
  const ImageReader& reader_;
  const Sampler& sampler_;
  Options options_;
  std::pmr::vector<uint8_t> pixels_;
  std::vector<Slot> slots_;
  std::unique_ptr<ReadAhead> read_ahead_;  // null without readers

  std::mutex mutex_;  // guards everything below
  std::condition_variable_any slot_freed_;
  std::condition_variable batch_ready_;
  uint64_t next_ticket_ = 0;
  uint64_t freed_batches_ = 0;  // batches the consumer is done with
  std::exception_ptr failure_;
  uint64_t depth_ = 0;  // batches that may be ahead
  std::shared_ptr<Recording> recording_;

  uint64_t taken_batches_ = 0;            // consumer only
  double wait_s_ = 0;                     // consumer only
  uint64_t stalls_ = 0;                   // consumer only
  double loading_s_ = 0, exposed_s_ = 0;  // consumer only
  double unexposed_s_ = 0;  // of the latest batches, consumer only
  struct Window {           // what adapt() looks at, consumer only
    double begun_s = 0, waited_s = 0, slowest_s = 0;
    int batches = 0;
  } window_;
  Scratch own_scratch_;  // of next(), without workers
  // Last: they stop before the members they use are destroyed.
  std::vector<std::jthread> threads_;
};

constexpr int kMostPrefetch = 8;  // where it is adapted

// The config's options for a loader of `batch` samples over this source, on a
// rank with `cores`.
Loader::Options loader_options(const DataConfig& config, int batch,
                               const ImageSource& source, int cores);

}  // namespace chexnet
