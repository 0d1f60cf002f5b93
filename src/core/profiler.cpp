// Time belongs to one phase at every moment: change() books the stretch since
// the last change to the phase that ends, so all seconds add up to the time
// since the start. A span keeps the phase it interrupts and goes back to it.
#include "chexnet/core/profiler.hpp"

#include <exception>
#include <utility>

#include "chexnet/core/clock.hpp"

namespace chexnet {

const char* phase_name(Phase phase) {
  static constexpr std::array<const char*, kPhases> kNames = {
      "other work",
      "waiting for data",
      "copying to the GPU",
      "forward",
      "backward",
      "waiting for gradients of other ranks",
      "agreeing with other ranks",
      "optimizer",
      "evaluation",
      "checkpoint",
      "set-up",
      "reading weights",
      "writing results",
      "ended"};
  const auto index = static_cast<size_t>(phase);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Profiler::Profiler() : since_s_(now_s()) {}

double Profiler::change(Phase to, double now, Shown shown) {
  if (now == 0) now = now_s();
  seconds_[static_cast<size_t>(phase())] += now - since_s_;
  phase_ = to;
  since_s_ = now;
  if (slot_ != nullptr && shown == Shown::kNow) {
    slot_->since_s.store(now, std::memory_order_relaxed);
    slot_->phase.store(static_cast<uint32_t>(to), std::memory_order_release);
  }
  return now;
}

Profiler::Seconds Profiler::seconds() const {
  Seconds seconds = seconds_;
  seconds[static_cast<size_t>(phase())] += now_s() - since_s_;
  return seconds;
}

void Profiler::set_slot(PhaseSlot* slot) {
  slot_ = slot;
  change(phase_, 0);
}

void Profiler::set_step(int64_t step) {
  if (slot_ == nullptr) return;
  slot_->since_s.store(now_s(), std::memory_order_relaxed);
  slot_->step.store(step, std::memory_order_relaxed);
}

void Profiler::entered_collective(uint64_t sequence) {
  if (slot_ == nullptr) return;
  slot_->since_s.store(now_s(), std::memory_order_relaxed);
  slot_->sequence.store(sequence, std::memory_order_relaxed);
}

void Profiler::rebook(Phase from, Phase to, double seconds) {
  seconds_[static_cast<size_t>(from)] -= seconds;
  seconds_[static_cast<size_t>(to)] += seconds;
}

void Profiler::record(std::shared_ptr<Recording> recording) {
  const std::lock_guard lock(mutex_);
  recording_ = std::move(recording);
}

std::shared_ptr<Recording> Profiler::recording() const {
  const std::lock_guard lock(mutex_);
  return recording_;
}

Profiler::Span::Span(Profiler* profiler, Phase phase, const char* name,
                     int32_t number)
    : profiler_(profiler), exceptions_(std::uncaught_exceptions()) {
  if (profiler_ == nullptr) return;
  event_.name = name != nullptr ? name : phase_name(phase);
  event_.number = number;
  before_ = profiler_->phase_;
  event_.begin_s = profiler_->change(phase, 0);
  if (profiler_->push_ != nullptr) profiler_->push_(event_.name);
}

Profiler::Span::~Span() {
  if (profiler_ == nullptr) return;
  if (profiler_->pop_ != nullptr) profiler_->pop_();
  const bool fails = std::uncaught_exceptions() > exceptions_;
  event_.end_s =
      profiler_->change(before_, 0, fails ? Shown::kLater : Shown::kNow);
  profiler_->add(event_);
}

}  // namespace chexnet
