#include "recorded_steps.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

// By then all exists that is made at the first use: plans of cuDNN, kernels,
// connections.
constexpr int kEager = 3;
constexpr size_t kRecordings = 2;

using State = std::vector<at::Tensor>;

// On the host: the device has memory for a step, and maybe no more.
State copy_of(const State& state) {
  State copy;
  for (const at::Tensor& t : state)
    copy.push_back(t.to(at::kCPU, t.scalar_type(), false, true));
  return copy;
}

void restore(const State& state, const State& from) {
  for (size_t i = 0; i < state.size(); ++i) state[i].copy_(from[i]);
}

bool is_equal(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor both_nan = a.isnan().logical_and(b.isnan());
  return a.eq(b).logical_or(both_nan).all().item<bool>();
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
}

// Where two eager steps end with the same bits, so must the recorded one. A
// library that adds in no fixed order may err by a few times what they differ.
bool is_alike(const at::Tensor& recorded, const at::Tensor& eager,
              const at::Tensor& again) {
  constexpr double kTimes = 4;
  return is_equal(recorded, eager) ||
         (!is_equal(again, eager) &&
          distance(recorded, eager) <= kTimes * distance(again, eager));
}

}  // namespace

RecordedSteps::RecordedSteps(std::unique_ptr<Recorder> recorder,
                             Communicator& comm, Training training,
                             bool required)
    : comm_(comm),
      training_(std::move(training)),
      required_(required),
      recorder_(std::move(recorder)) {}

RecordedSteps::Inputs RecordedSteps::inputs_of(
    const std::vector<at::Tensor>& tensors) {
  Inputs inputs;
  for (const at::Tensor& t : tensors) {
    Input& input = inputs.emplace_back();
    if (t.defined()) input = {t.const_data_ptr(), t.sizes().vec()};
  }
  return inputs;
}

std::optional<size_t> RecordedSteps::next(const Inputs& inputs) const {
  for (size_t i = 0; i < recordings_.size(); ++i)
    if (i != last_ && recordings_[i].inputs == inputs) return i;
  return std::nullopt;
}

at::Tensor RecordedSteps::run(const std::vector<at::Tensor>& tensors,
                              const Compute& compute) {
  const Inputs inputs = inputs_of(tensors);
  if (const auto known = next(inputs)) return replay(*known);
  last_.reset();
  if (recorder_ == nullptr || recordings_.size() == kRecordings ||
      ++eager_ <= kEager)
    return compute();
  training_.settle();
  if (recordings_.empty()) return compared(inputs, compute);
  return record(inputs, compute) ? replay(recordings_.size() - 1) : compute();
}

at::Tensor RecordedSteps::replay(size_t index) {
  const Recording& recording = recordings_[index];
  recorder_->replay(recording.number);
  if (recording.waits) comm_.replayed(recording.waits);
  last_ = index;
  return recording.figures;
}

at::Tensor RecordedSteps::compute_and_wait(const Compute& compute) {
  at::Tensor figures = compute();
  while (comm_.wait_until_finished()) continue;
  return figures;
}

RecordedSteps::Recording RecordedSteps::recorded(const Inputs& inputs,
                                                 const Compute& compute) {
  Recording recording{inputs, 0, {}, nullptr};
  comm_.begin_recording();
  try {
    recording.number =
        recorder_->record([&] { recording.figures = compute(); });
  } catch (...) {
    comm_.end_recording();
    throw;
  }
  recording.waits = comm_.end_recording();
  return recording;
}

// On every rank or on none, as its collectives need all.
bool RecordedSteps::record(const Inputs& inputs, const Compute& compute) {
  const std::string cannot = "a step cannot be recorded: ";
  std::string problem;
  try {
    recordings_.push_back(recorded(inputs, compute));
  } catch (const c10::Error& error) {
    problem = cannot + error.what_without_backtrace();
  } catch (const DeviceError& error) {
    problem = cannot + error.what();
  }
  if (!any_rank(comm_, !problem.empty())) return true;
  give_up(problem);
  return false;
}

// Of the first recording alone: beside it there may be no memory for a step
// that is not recorded.
at::Tensor RecordedSteps::compared(const Inputs& inputs,
                                   const Compute& compute) {
  const State before = copy_of(training_.state);
  at::Tensor figures = compute_and_wait(compute);
  const State eager = copy_of(training_.state);
  restore(training_.state, before);
  compute_and_wait(compute);
  const State again = copy_of(training_.state);
  restore(training_.state, before);

  if (record(inputs, compute)) {
    at::Tensor replayed = replay(0);
    while (comm_.wait_until_finished()) continue;
    const State found = copy_of(training_.state);
    std::string problem;
    for (size_t i = 0; i < found.size(); ++i)
      if (!is_alike(found[i], eager[i], again[i]))
        problem = "a recorded step ends with other weights than an eager one";
    comm_.begin_step();
    comm_.finish();  // what the caller waits for
    if (!any_rank(comm_, !problem.empty())) return replayed;
    give_up(problem);
  } else {
    comm_.finish();
  }
  restore(training_.state, eager);
  return figures;
}

void RecordedSteps::give_up(const std::string& problem) {
  last_.reset();
  recorder_.reset();  // before the events that its recordings set
  recordings_.clear();
  std::string first;
  for (const auto& text :
       gather_text(comm_, problem.empty() ? "" : host_name() + ": " + problem))
    if (first.empty()) first = text;
  const std::string hint =
      "Hint: train.record_step=off launches the kernels of a step one by one";
  if (required_)
    throw DeviceError("[device] {}, and train.record_step=on asks for it. {}",
                      first, hint);
  if (comm_.rank() == 0)
    log_warning("[device] " + first +
                "; all ranks launch a step's kernels one "
                "by one, which is slower for small batches");
}

}  // namespace chexnet
