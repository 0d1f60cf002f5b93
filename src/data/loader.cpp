#include "chexnet/data/loader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

constexpr std::uint64_t kFirstPrefetch = 3;  // of prefetch -1
constexpr double kStallSeconds = 1e-3;
constexpr int kWindowBatches = 16;
constexpr double kWaitShareForMore = 0.02;  // of the time spent waiting, for one more worker

}  // namespace

std::string Batch::first_error() const {
  const auto found = std::ranges::find_if(errors, [](const auto& e) { return !e.empty(); });
  return found == errors.end() ? std::string() : *found;
}

Loader::Loader(const Manifest& manifest, const ImageReader& reader, const Sampler& sampler,
               Options options, std::pmr::memory_resource* memory)
    : manifest_(manifest),
      reader_(reader),
      sampler_(sampler),
      options_(options),
      pixels_(memory),
      slots_(static_cast<std::size_t>(
          options.workers == 0 ? 1 : options.prefetch.value_or(kMostPrefetch) + 1)),
      depth_(options.prefetch ? static_cast<std::uint64_t>(*options.prefetch) : kFirstPrefetch) {
  const auto side = static_cast<std::size_t>(reader.crop());
  const auto count = static_cast<std::size_t>(options.batch);
  const std::size_t bytes = count * side * side;
  // Written here first, so the pages are on the NUMA node this rank is bound to.
  pixels_.resize(bytes * slots_.size());
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    Batch& batch = slots_[s].batch;
    batch.size = options.batch;
    batch.images = std::span(pixels_).subspan(s * bytes, bytes);
    batch.labels.resize(count * manifest.finding_count());
    batch.samples.resize(count);
    batch.errors.resize(count);
    prepare(slots_[s]);
  }
  if (options.readers > 0)
    read_ahead_ = std::make_unique<ReadAhead>(
        reader.source(), sampler, options.readers,
        2 * options.readers + std::max(options.workers.value_or(1), options.max_workers));
  for (int w = 0; w < options.workers.value_or(1); ++w) start_worker();
}

void Loader::start_worker() {
  threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

Loader::~Loader() {
  for (auto& thread : threads_) thread.request_stop();
  slot_freed_.notify_all();
}

void Loader::prepare(Slot& slot) const {
  slot.missing = options_.batch;
  slot.batch.damaged = 0;
  std::ranges::fill(slot.batch.errors, std::string());
}

void Loader::fill(std::uint64_t ticket, ImageReader::Scratch& scratch,
                  const std::stop_token& stop) {
  const auto count = static_cast<std::uint64_t>(options_.batch);
  Slot& slot = slots_[(ticket / count) % slots_.size()];
  const std::size_t i = ticket % count;
  const std::size_t pixels = slot.batch.images.size() / count;
  const std::size_t findings = manifest_.finding_count();
  std::uint8_t* image = &slot.batch.images[i * pixels];
  float* labels = &slot.batch.labels[i * findings];
  const Sample sample = sampler_.at(ticket);
  slot.batch.samples[i] = sample;
  std::string& error = slot.batch.errors[i];
  try {
    if (read_ahead_) {
      const FetchedImage* fetched = read_ahead_->wait(ticket, stop);
      if (fetched == nullptr) return;
      if (!sample.padding) reader_.decode(sample, *fetched, image, scratch);
    } else if (!sample.padding) {
      reader_.read(sample, image, scratch, stop);
    }
    if (!sample.padding) std::copy_n(manifest_.label_row(sample.row), findings, labels);
  } catch (const DataError& e) {
    error = e.what();
  }
  if (read_ahead_) read_ahead_->done(ticket);
  discard(ticket, scratch, stop);
  if (sample.padding || !error.empty()) {
    std::fill_n(image, pixels, std::uint8_t{0});
    std::fill_n(labels, findings, std::numeric_limits<float>::quiet_NaN());
  }
  const std::lock_guard lock(mutex_);
  slot.batch.damaged += error.empty() ? 0 : 1;
  if (--slot.missing > 0) return;
  slot.made_s = now_s() - slot.begun_s;
  batch_ready_.notify_one();
}

void Loader::discard(std::uint64_t ticket, ImageReader::Scratch& scratch,
                     const std::stop_token& stop) const {
  thread_local std::vector<std::uint32_t> rows;
  thread_local std::vector<std::uint8_t> unwanted;
  sampler_.discarded(ticket, rows);
  for (const auto row : rows) {
    unwanted.resize(static_cast<std::size_t>(reader_.crop()) *
                    static_cast<std::size_t>(reader_.crop()));
    try {
      reader_.read({.row = row}, unwanted.data(), scratch, stop);
    } catch (const DataError&) {  // its own rank reports it
    }
  }
}

void Loader::work(const std::stop_token& stop) {
  try {
    ImageReader::Scratch scratch;
    for (;;) {
      std::uint64_t ticket = 0;
      {
        std::unique_lock lock(mutex_);
        const auto free_slot = [this] {
          return next_ticket_ / static_cast<std::uint64_t>(options_.batch) <
                 freed_batches_ + depth_ + 1;
        };
        if (!slot_freed_.wait(lock, stop, free_slot) || stop.stop_requested()) return;
        ticket = next_ticket_++;
        const auto batch = static_cast<std::uint64_t>(options_.batch);
        if (ticket % batch == 0) slots_[(ticket / batch) % slots_.size()].begun_s = now_s();
      }
      fill(ticket, scratch, stop);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    batch_ready_.notify_all();
  }
}

const Batch& Loader::next() {
  const double start = now_s();
  std::unique_lock lock(mutex_);
  if (taken_batches_ > 0) {
    prepare(slots_[(taken_batches_ - 1) % slots_.size()]);
    ++freed_batches_;
    slot_freed_.notify_all();
  }
  Slot& slot = slots_[taken_batches_ % slots_.size()];
  if (options_.workers == 0) {
    lock.unlock();
    const auto count = static_cast<std::uint64_t>(options_.batch);
    for (std::uint64_t i = 0; i < count; ++i) fill(taken_batches_ * count + i, own_scratch_, {});
  } else {
    batch_ready_.wait(lock, [&] { return slot.missing == 0 || failure_; });
    if (failure_) std::rethrow_exception(failure_);
  }
  ++taken_batches_;
  const double now = now_s(), waited = now - start;
  wait_s_ += waited;
  if (waited > kStallSeconds) ++stalls_;
  if (options_.workers != 0) {
    window_.slowest_s = std::max(window_.slowest_s, slot.made_s);
    adapt(now, waited);
  }
  return slot.batch;
}

// Called with the lock held, after each batch. Jitter wants depth: while the slowest batch is being
// made, training takes slowest / interval others. A lack of throughput wants workers.
void Loader::adapt(double now, double waited) {
  window_.waited_s += waited;
  if (++window_.batches < kWindowBatches) return;
  const double elapsed = std::max(now - window_.begun_s, 1e-9);
  if (window_.begun_s > 0) {  // the first window holds the start of the workers
    if (!options_.prefetch) {
      const double interval = elapsed / kWindowBatches;
      const double wanted = 2 + std::ceil(window_.slowest_s / interval);
      depth_ = static_cast<std::uint64_t>(std::clamp(wanted, static_cast<double>(kFirstPrefetch),
                                                     static_cast<double>(kMostPrefetch)));
      slot_freed_.notify_all();
    }
    if (!options_.workers && static_cast<int>(threads_.size()) < options_.max_workers &&
        window_.waited_s > kWaitShareForMore * elapsed)
      start_worker();
  }
  window_ = {now, 0, 0, 0};
}

Loader::Stats Loader::stats() const {
  return {wait_s_, stalls_, static_cast<int>(threads_.size()), static_cast<int>(depth_)};
}

Loader::Options loader_options(const DataConfig& config, int batch, const ImageSource& source,
                               int cores) {
  const auto number = [](const std::optional<std::int64_t>& given) -> std::optional<int> {
    if (!given) return std::nullopt;
    return static_cast<int>(*given);
  };
  return {batch, number(config.workers), number(config.prefetch),
          number(config.readers).value_or(source.wanted_readers()), std::max(1, cores)};
}

}  // namespace chexnet
