#include "chexnet/data/loader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "chexnet/core/error.hpp"
#include "chexnet/core/resources.hpp"

namespace chexnet {

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
      slots_(static_cast<std::size_t>(options.workers == 0 ? 1 : options.prefetch + 1)) {
  const auto side = static_cast<std::size_t>(reader.crop());
  const auto count = static_cast<std::size_t>(options.batch);
  const std::size_t bytes = count * side * side;
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
    read_ahead_ = std::make_unique<ReadAhead>(reader.source(), sampler, options.readers,
                                              2 * options.readers + options.workers);
  for (int w = 0; w < options.workers; ++w)
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
      const Fetched* fetched = read_ahead_->wait(ticket, stop);
      if (fetched == nullptr) return;
      if (!sample.padding) reader_.decode(sample, *fetched, image, scratch);
    } else if (!sample.padding) {
      reader_.read(sample, image, scratch);
    }
    if (!sample.padding) std::copy_n(manifest_.label_row(sample.row), findings, labels);
  } catch (const DataError& e) {
    error = e.what();
  }
  if (read_ahead_) read_ahead_->done(ticket);
  discard(ticket, scratch);
  if (sample.padding || !error.empty()) {
    std::fill_n(image, pixels, std::uint8_t{0});
    std::fill_n(labels, findings, std::numeric_limits<float>::quiet_NaN());
  }
  const std::lock_guard lock(mutex_);
  slot.batch.damaged += error.empty() ? 0 : 1;
  if (--slot.missing == 0) batch_ready_.notify_one();
}

void Loader::discard(std::uint64_t ticket, ImageReader::Scratch& scratch) const {
  thread_local std::vector<std::uint32_t> rows;
  thread_local std::vector<std::uint8_t> unwanted;
  sampler_.discarded(ticket, rows);
  for (const auto row : rows) {
    unwanted.resize(static_cast<std::size_t>(reader_.crop()) *
                    static_cast<std::size_t>(reader_.crop()));
    try {
      reader_.read({.row = row}, unwanted.data(), scratch);
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
                 freed_batches_ + slots_.size();
        };
        if (!slot_freed_.wait(lock, stop, free_slot) || stop.stop_requested()) return;
        ticket = next_ticket_++;
      }
      fill(ticket, scratch, stop);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
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
  wait_s_ += now_s() - start;
  return slot.batch;
}

Loader::Options loader_options(const DataConfig& config, int batch, const ImageSource& source) {
  return {batch, static_cast<int>(config.workers), static_cast<int>(config.prefetch),
          config.readers < 0 ? source.wanted_readers() : static_cast<int>(config.readers)};
}

}  // namespace chexnet
