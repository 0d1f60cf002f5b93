// An operator that is timed alone, with a wait before and after, takes longer
// than in a full queue: rows are to be compared with each other and with bytes
// over bandwidth, and do not add up to a step.
#include "chexnet/model/operator_times.hpp"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <span>
#include <utility>

#include "chexnet/core/clock.hpp"

namespace chexnet {

struct OperatorTimes::State {
  std::function<void()> wait;
  std::map<std::string, OperatorRow> rows;
  std::int64_t depth = 0;
  double start = 0;
  std::int64_t bytes = 0;
};

namespace {

// The hooks are plain functions, which get no argument of ours.
thread_local OperatorTimes::State* current = nullptr;

std::int64_t bytes_of(std::span<const c10::IValue> values) {
  std::int64_t bytes = 0;
  for (const auto& value : values) {
    if (value.isTensor() && value.toTensor().defined())
      bytes += static_cast<std::int64_t>(value.toTensor().nbytes());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorList())
        bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  return bytes;
}

std::unique_ptr<at::ObserverContext> began(const at::RecordFunction& call) {
  OperatorTimes::State& state = *current;
  if (state.depth++ > 0) return nullptr;
  const c10::ArrayRef<const c10::IValue> inputs = call.inputs();
  state.bytes = bytes_of({inputs.data(), inputs.size()});
  state.wait();
  state.start = now_s();
  return nullptr;
}

void ended(const at::RecordFunction& call, at::ObserverContext*) {
  OperatorTimes::State& state = *current;
  if (--state.depth > 0) return;
  state.wait();
  OperatorRow& row = state.rows[call.name()];
  row.name = call.name();
  ++row.calls;
  row.seconds += now_s() - state.start;
  row.bytes += state.bytes + bytes_of(call.outputs());
}

}  // namespace

OperatorTimes::OperatorTimes(std::function<void()> wait)
    : state_(std::make_unique<State>()) {
  assert(current == nullptr && wait != nullptr);
  state_->wait = std::move(wait);
  current = state_.get();
  handle_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(began, ended)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

OperatorTimes::~OperatorTimes() {
  at::removeCallback(handle_);
  current = nullptr;
}

std::vector<OperatorRow> OperatorTimes::rows() const {
  std::vector<OperatorRow> rows;
  for (const auto& [name, row] : state_->rows) rows.push_back(row);
  std::ranges::sort(rows, std::greater<>(), &OperatorRow::seconds);
  return rows;
}

}  // namespace chexnet
