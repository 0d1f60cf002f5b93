// The ring. With n = samples a batch and R slots, ticket t is sample t mod n of
// batch b = t / n, which is made in slot b mod R. Batches go through their
// slots in this order:
//
//        freed_batches_     taken_batches_         freed_batches_ + depth_ + 1
//             |  in use           |  ready, or filling            |  free: no
//             v  (at most one)    v                               v  ticket yet
//   … free | consumer's slot | workers' slots, `missing` > 0 or = 0 | free …
//
// Who owns a slot: from the first ticket of its batch on, each worker owns the
// parts of the samples whose tickets it took (disjoint, so without the lock);
// the worker that brings `missing` to 0 hands the slot to the consumer; the
// consumer has it from next() to the following next(), which prepares it and
// frees it by ++freed_batches_. `missing`, `damaged` and the counters change
// under the lock.
//
// depth_ + 1 <= R, so a ticket's slot is never one that the consumer still
// reads.
#include "chexnet/data/loader.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <limits>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "picture_note.hpp"

namespace chexnet {
namespace {

constexpr uint64_t kFirstPrefetch = 3;  // when it adapts
constexpr double kStallSeconds = 1e-3;
constexpr std::chrono::milliseconds kAskAgain(200);  // about a stop
constexpr int kWindowBatches = 16;
// Of the time spent waiting, for one more worker.
constexpr double kWaitFractionForMore = 0.02;

// One is with the consumer, the others are ahead of it.
size_t slots_for(const Loader::Options& options) {
  if (options.workers == 0) return 1;
  return size_t{1} +
         static_cast<size_t>(options.prefetch.value_or(kMostPrefetch));
}

uint64_t first_depth(const Loader::Options& options) {
  return options.prefetch ? static_cast<uint64_t>(*options.prefetch)
                          : kFirstPrefetch;
}

}  // namespace

std::string Batch::first_error() const {
  const auto found =
      std::ranges::find_if(errors, [](const auto& e) { return !e.empty(); });
  return found == errors.end() ? std::string() : *found;
}

Loader::Loader(const Manifest& manifest, const ImageReader& reader,
               const Sampler& sampler, Options options,
               std::pmr::memory_resource* memory)
    : manifest_(manifest),
      reader_(reader),
      sampler_(sampler),
      options_(options),
      pixels_(memory),
      slots_(slots_for(options)),
      depth_(first_depth(options)) {
  assert(options.batch > 0 && options.workers.value_or(1) >= 0 &&
         options.prefetch.value_or(0) >= 0);
  const auto side = static_cast<size_t>(reader.crop());
  const auto count = static_cast<size_t>(options.batch);
  const size_t bytes = count * side * side;
  // First touched here, so the pages are on the NUMA node this rank is bound
  // to.
  pixels_.resize(bytes * slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) {
    Batch& batch = slots_[s].batch;
    batch.size = options.batch;
    batch.images = std::span(pixels_).subspan(s * bytes, bytes);
    batch.labels.resize(count * manifest.finding_count());
    if (!manifest.sample_weights.empty()) batch.sample_weights.resize(count);
    batch.samples.resize(count);
    batch.errors.resize(count);
    batch.notes.resize(count);
    prepare(slots_[s]);
  }
  if (options.readers > 0)
    read_ahead_ = std::make_unique<ReadAhead>(
        reader.source(), sampler, options.readers,
        2 * options.readers +
            std::max(options.workers.value_or(1), options.max_workers));
  for (int w = 0; w < options.workers.value_or(1); ++w) start_worker();
}

void Loader::start_worker() {
  const auto worker = static_cast<int>(threads_.size());
  threads_.emplace_back(
      [this, worker](const std::stop_token& stop) { work(worker, stop); });
}

void Loader::record(const std::shared_ptr<Recording>& recording) {
  if (read_ahead_) read_ahead_->record(recording);
  const std::lock_guard lock(mutex_);
  recording_ = recording;
}

Loader::~Loader() {
  for (auto& thread : threads_) thread.request_stop();
  slot_freed_.notify_all();
}

void Loader::prepare(Slot& slot) const {
  slot.missing = options_.batch;
  slot.work_s = 0;
  slot.batch.damaged = 0;
  std::ranges::fill(slot.batch.errors, std::string());
  std::ranges::fill(slot.batch.notes, std::string());
}

// Image and bytes of one sample. Null when a stop came before them; DataError:
// it is damaged.
const FetchedImage* Loader::read_sample(const Sample& sample, uint64_t ticket,
                                        uint8_t* image, Scratch& scratch,
                                        const std::stop_token& stop) {
  if (!read_ahead_) {
    if (!sample.padding) reader_.read(sample, image, scratch.reader, stop);
    return &scratch.reader.fetched;
  }
  const FetchedImage* fetched = read_ahead_->wait(ticket, stop);
  if (fetched != nullptr && !sample.padding)
    reader_.decode(sample, *fetched, image, scratch.reader);
  return fetched;
}

void Loader::fill(uint64_t ticket, Scratch& scratch,
                  const std::stop_token& stop) {
  const double start = now_s();
  const auto count = static_cast<uint64_t>(options_.batch);
  Slot& slot = slot_of(ticket / count);
  Batch& batch = slot.batch;
  const size_t i = ticket % count;
  const size_t pixels = batch.images.size() / count;
  const size_t findings = manifest_.finding_count();
  uint8_t* image = &batch.images[i * pixels];
  float* labels = &batch.labels[i * findings];
  std::string& error = batch.errors[i];

  const Sample sample = sampler_.at(ticket);
  batch.samples[i] = sample;
  try {
    const FetchedImage* fetched =
        read_sample(sample, ticket, image, scratch, stop);
    if (fetched == nullptr) return;
    if (options_.notes && !sample.padding)
      batch.notes[i] = picture_note(*fetched, {image, pixels}, reader_.crop());
    if (!sample.padding) {
      std::copy_n(manifest_.label_row(sample.row), findings, labels);
      if (!batch.sample_weights.empty())
        batch.sample_weights[i] = manifest_.sample_weights[sample.row];
    }
    if (sample.share < 1) mix_partner(sample, batch, i, scratch, stop);
  } catch (const DataError& e) {
    error = e.what();
  } catch (const AbsentError& e) {
    if (!options_.absent_is_damage) throw;
    error = e.what();
  }
  if (read_ahead_) read_ahead_->done(ticket);
  discard(ticket, scratch, stop);
  if (sample.padding || !error.empty()) {
    std::fill_n(image, pixels, uint8_t{0});
    std::fill_n(labels, findings, std::numeric_limits<float>::quiet_NaN());
  }

  const double end = now_s();
  const std::lock_guard lock(mutex_);
  batch.damaged += error.empty() ? 0 : 1;
  slot.work_s += end - start;
  assert(slot.missing > 0);
  if (--slot.missing > 0) return;
  slot.made_s = end - slot.begun_s;
  batch_ready_.notify_one();
}

// A label that one of the two images lacks is not known of the mixture. The
// loss is linear in the label: with weights v and w, (own) v times the one's
// loss and (rest) w times the other's is the loss of one label with one weight.
void Loader::mix_partner(const Sample& sample, Batch& batch, size_t index,
                         Scratch& scratch, const std::stop_token& stop) const {
  const size_t pixels = batch.images.size() / batch.samples.size();
  uint8_t* image = &batch.images[index * pixels];
  scratch.other.resize(pixels);
  reader_.read(
      {.row = sample.partner, .position = partner_position(sample.position)},
      scratch.other.data(), scratch.reader, stop);
  double own = sample.share, rest = 1 - own;
  for (size_t i = 0; i < pixels; ++i)
    image[i] = static_cast<uint8_t>(
        std::lround(own * image[i] + rest * scratch.other[i]));
  if (!batch.sample_weights.empty()) {
    const double v = own * manifest_.sample_weights[sample.row],
                 w = rest * manifest_.sample_weights[sample.partner];
    batch.sample_weights[index] = static_cast<float>(v + w);
    if (v + w > 0) {
      own = v / (v + w);
      rest = w / (v + w);
    }
  }
  const size_t findings = manifest_.finding_count();
  float* labels = &batch.labels[index * findings];
  const float* other = manifest_.label_row(sample.partner);
  for (size_t k = 0; k < findings; ++k)
    labels[k] = static_cast<float>(own * labels[k] + rest * other[k]);
}

// Images that data.pipeline old decodes and does not train on.
void Loader::discard(uint64_t ticket, Scratch& scratch,
                     const std::stop_token& stop) const {
  sampler_.discarded(ticket, scratch.discarded);
  const auto side = static_cast<size_t>(reader_.crop());
  for (const auto row : scratch.discarded) {
    scratch.other.resize(side * side);
    try {
      reader_.read({.row = row}, scratch.other.data(), scratch.reader, stop);
    } catch (const DataError&) {  // the rank that trains on it does
    }
  }
}

void Loader::work(int worker, const std::stop_token& stop) {
  try {
    Scratch scratch;
    std::shared_ptr<Recording> recording;
    const auto count = static_cast<uint64_t>(options_.batch);
    for (;;) {
      uint64_t ticket = 0;
      {
        std::unique_lock lock(mutex_);
        const auto has_free_slot = [&] {
          return next_ticket_ / count < freed_batches_ + depth_ + 1;
        };
        if (!slot_freed_.wait(lock, stop, has_free_slot) ||
            stop.stop_requested())
          return;
        ticket = next_ticket_++;
        if (ticket % count == 0) slot_of(ticket / count).begun_s = now_s();
        recording = recording_;
      }
      const double start = recording ? now_s() : 0;
      fill(ticket, scratch, stop);
      if (recording)
        recording->add({"image", -1, Track::kLoader, worker, start, now_s()});
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    batch_ready_.notify_all();
  }
}

const Batch& Loader::next() {
  return *next_unless([] { return false; });
}

const Batch* Loader::next_unless(const std::function<bool()>& stop) {
  const double start = now_s();
  free_last();
  Slot& slot = slot_of(taken_batches_);
  if (!wait_for(slot, stop)) return nullptr;
  const std::lock_guard lock(mutex_);
  ++taken_batches_;
  const double now = now_s(), waited = now - start;
  wait_s_ += waited;
  if (waited > kStallSeconds) ++stalls_;
  count_loading(
      slot.work_s / static_cast<double>(std::max<size_t>(1, threads_.size())),
      waited);
  if (options_.workers != 0) {
    window_.slowest_s = std::max(window_.slowest_s, slot.made_s);
    adapt(now, waited);
  }
  return &slot.batch;
}

// Batches may come in one piece, so that one wait is for all of them; there are
// no more than may be ahead.
void Loader::count_loading(double loading_s, double waited_s) {
  loading_s_ += loading_s;
  const double most = static_cast<double>(depth_ + 1) * loading_s;
  unexposed_s_ = std::min(unexposed_s_ + loading_s, most);
  const double exposed_s = std::min(waited_s, unexposed_s_);
  exposed_s_ += exposed_s;
  unexposed_s_ -= exposed_s;
}

void Loader::free_last() {
  const std::lock_guard lock(mutex_);
  if (taken_batches_ == freed_batches_) return;
  prepare(slot_of(taken_batches_ - 1));
  ++freed_batches_;
  slot_freed_.notify_all();
}

// Whether the batch is ready. A read that fails because of the stop (S3Client)
// is not the cause of the end.
bool Loader::wait_for(const Slot& slot, const std::function<bool()>& stop) {
  if (stop()) return false;
  try {
    if (options_.workers == 0) {
      const auto count = static_cast<uint64_t>(options_.batch);
      for (uint64_t i = 0; i < count; ++i)
        fill(taken_batches_ * count + i, own_scratch_, {});
      return true;
    }
    const auto is_over = [&] { return slot.missing == 0 || failure_; };
    std::unique_lock lock(mutex_);
    while (!batch_ready_.wait_for(lock, kAskAgain, is_over)) {
      lock.unlock();
      if (stop()) return false;
      lock.lock();
    }
    if (failure_) std::rethrow_exception(failure_);
    return true;
  } catch (const OutageError&) {
    if (stop()) return false;
    throw;
  }
}

// Called with the lock held, after each batch. Jitter wants depth; a lack of
// throughput wants workers.
void Loader::adapt(double now, double waited) {
  window_.waited_s += waited;
  if (++window_.batches < kWindowBatches) return;
  const double elapsed = std::max(now - window_.begun_s, 1e-9);
  if (window_.begun_s > 0) {  // the first window holds the start of the workers
    if (!options_.prefetch) adapt_depth(elapsed);
    const bool may_grow =
        !options_.workers &&
        static_cast<int>(threads_.size()) < options_.max_workers;
    if (may_grow && window_.waited_s > kWaitFractionForMore * elapsed)
      start_worker();
  }
  window_ = {now, 0, 0, 0};
}

// While the slowest batch is being made, training takes slowest / interval
// others.
void Loader::adapt_depth(double elapsed) {
  const double interval = elapsed / kWindowBatches;
  const double wanted = 2 + std::ceil(window_.slowest_s / interval);
  const double depth = std::clamp(wanted, static_cast<double>(kFirstPrefetch),
                                  static_cast<double>(kMostPrefetch));
  depth_ = static_cast<uint64_t>(depth);
  assert(depth_ < slots_.size());
  slot_freed_.notify_all();
}

Loader::Stats Loader::stats() const {
  return {wait_s_,
          stalls_,
          static_cast<int>(threads_.size()),
          static_cast<int>(depth_),
          loading_s_,
          exposed_s_};
}

Loader::Options loader_options(const DataConfig& config, int batch,
                               const ImageSource& source, int cores) {
  const auto number =
      [](const std::optional<int64_t>& given) -> std::optional<int> {
    if (!given) return std::nullopt;
    return static_cast<int>(*given);
  };
  Loader::Options options;
  options.batch = batch;
  options.workers = number(config.workers);
  options.prefetch = number(config.prefetch);
  options.readers = number(config.readers).value_or(source.wanted_readers());
  options.max_workers = std::max(1, cores);
  return options;
}

}  // namespace chexnet
