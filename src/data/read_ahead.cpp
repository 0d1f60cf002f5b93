// Ticket t uses slot t mod n, and slots go round for ever:
//
//   slot.ticket == t, not ready   a reader owns it: the one that took ticket t
//                                 from next_
//   slot.ticket == t, ready       the worker that holds ticket t owns it, from
//                                 wait() to done()
//   done(t)                       slot.ticket = t + n: it is the next reader's
//                                 that comes round
//
// Only ticket and ready change under the lock; bytes and failure belong to the
// owner.
#include "chexnet/data/read_ahead.hpp"

#include <cassert>
#include <utility>

#include "chexnet/core/clock.hpp"

namespace chexnet {

ReadAhead::ReadAhead(const ImageSource& source, const Sampler& sampler,
                     int threads, int slots)
    : source_(source), sampler_(sampler), slots_(static_cast<size_t>(slots)) {
  assert(threads > 0 && slots >= threads);
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].ticket = i;
  for (int t = 0; t < threads; ++t)
    threads_.emplace_back(
        [this, t](const std::stop_token& stop) { work(t, stop); });
}

ReadAhead::~ReadAhead() {
  for (auto& thread : threads_) thread.request_stop();
  slot_free_.notify_all();
}

void ReadAhead::record(std::shared_ptr<Recording> recording) {
  const std::lock_guard lock(mutex_);
  recording_ = std::move(recording);
}

void ReadAhead::work(int thread, const std::stop_token& stop) {
  std::shared_ptr<Recording> recording;
  for (;;) {
    Slot* slot = nullptr;
    uint64_t ticket = 0;
    {
      std::unique_lock lock(mutex_);
      ticket = next_++;
      slot = &slots_[ticket % slots_.size()];
      if (!slot_free_.wait(lock, stop, [&] { return slot->ticket == ticket; }))
        return;
      recording = recording_;
    }
    if (stop.stop_requested()) return;
    const double start = recording ? now_s() : 0;
    slot->failure = nullptr;
    try {
      const Sample sample = sampler_.at(ticket);
      if (!sample.padding) source_.fetch(sample.row, slot->fetched, stop);
    } catch (...) {
      slot->failure = std::current_exception();
    }
    if (recording)
      recording->add({"read", -1, Track::kReader, thread, start, now_s()});
    const std::lock_guard lock(mutex_);
    slot->ready = true;
    slot_ready_.notify_all();
  }
}

const FetchedImage* ReadAhead::wait(uint64_t ticket,
                                    const std::stop_token& stop) {
  Slot& slot = slots_[ticket % slots_.size()];
  {
    std::unique_lock lock(mutex_);
    if (!slot_ready_.wait(lock, stop,
                          [&] { return slot.ticket == ticket && slot.ready; }))
      return nullptr;
  }
  if (slot.failure) std::rethrow_exception(slot.failure);
  return &slot.fetched;
}

void ReadAhead::done(uint64_t ticket) {
  Slot& slot = slots_[ticket % slots_.size()];
  const std::lock_guard lock(mutex_);
  assert(slot.ticket == ticket && slot.ready);
  slot.ready = false;
  slot.ticket += slots_.size();
  slot_free_.notify_all();
}

}  // namespace chexnet
