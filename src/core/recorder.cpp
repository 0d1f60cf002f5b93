#include "chexnet/core/recorder.hpp"

#include "chexnet/core/resources.hpp"

namespace chexnet {

const char* operation_name(Operation operation) {
  static constexpr std::array<const char*, kOperations> kNames = {
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
      "ended"};
  const auto index = static_cast<std::size_t>(operation);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Recorder::Recorder() : since_s_(now_s()) {}

double Recorder::change(Operation to, double now) {
  if (now == 0) now = now_s();
  seconds_[static_cast<std::size_t>(operation_)] += now - since_s_;
  operation_ = to;
  since_s_ = now;
  if (board_ != nullptr) {
    board_->since_s.store(now, std::memory_order_relaxed);
    board_->operation.store(static_cast<std::uint32_t>(to), std::memory_order_release);
  }
  return now;
}

Recorder::Seconds Recorder::seconds() const {
  Seconds seconds = seconds_;
  seconds[static_cast<std::size_t>(operation_)] += now_s() - since_s_;
  return seconds;
}

void Recorder::set_board(OperationBoard* board) {
  board_ = board;
  change(operation_, 0);
}

void Recorder::set_step(std::int64_t step) {
  if (board_ != nullptr) board_->step.store(step, std::memory_order_relaxed);
}

void Recorder::entered_collective(std::uint64_t sequence) {
  if (board_ != nullptr) board_->sequence.store(sequence, std::memory_order_relaxed);
}

void Recorder::start_timeline(std::size_t events) {
  capacity_ = events;
  events_.reserve(events);
}

void Recorder::add(const TimelineEvent& event) {
  if (events_.size() < capacity_)
    events_.push_back(event);
  else if (capacity_ > 0)
    ++dropped_;
}

Recorder::Span::Span(Recorder* recorder, Operation operation, const char* name, std::int32_t number)
    : recorder_(recorder) {
  if (recorder_ == nullptr) return;
  event_.name = name != nullptr ? name : operation_name(operation);
  event_.number = number;
  before_ = recorder_->operation_;
  event_.begin_s = recorder_->change(operation, 0);
  if (recorder_->push_ != nullptr) recorder_->push_(event_.name);
}

Recorder::Span::~Span() {
  if (recorder_ == nullptr) return;
  if (recorder_->pop_ != nullptr) recorder_->pop_();
  event_.end_s = recorder_->change(before_, 0);
  recorder_->add(event_);
}

}  // namespace chexnet
