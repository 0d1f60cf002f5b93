// An operator that is timed alone, with a wait before and after, takes longer
// than in a full queue: rows are to be compared with each other and with bytes
// over bandwidth, and do not add up to a step.
#include "chexnet/model/operator_times.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "operator_hook.hpp"

namespace chexnet {

namespace {

int64_t bytes_of(OperatorValues values) {
  int64_t bytes = 0;
  for (const auto& value : values) {
    if (value.isTensor() && value.toTensor().defined())
      bytes += static_cast<int64_t>(value.toTensor().nbytes());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorList())
        bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

}  // namespace

struct OperatorTimes::State final : OperatorListener {
  void began(const at::RecordFunction&, OperatorValues inputs,
             bool ours) override {
    if (!ours) return;
    bytes = bytes_of(inputs);
    wait();
    start = now_s();
  }
  void ended(const at::RecordFunction& call, OperatorValues outputs,
             bool ours) override {
    if (!ours) return;
    wait();
    OperatorRow& row = rows[call.name()];
    row.name = call.name();
    ++row.calls;
    row.seconds += now_s() - start;
    row.bytes += bytes + bytes_of(outputs);
  }

  std::function<void()> wait;
  std::map<std::string, OperatorRow> rows;
  double start = 0;
  int64_t bytes = 0;
};

OperatorTimes::OperatorTimes(std::function<void()> wait)
    : state_(std::make_unique<State>()) {
  assert(wait != nullptr);
  state_->wait = std::move(wait);
  hook_ = std::make_unique<OperatorHook>(*state_);
}

OperatorTimes::~OperatorTimes() = default;

std::vector<OperatorRow> OperatorTimes::rows() const {
  std::vector<OperatorRow> rows;
  for (const auto& [name, row] : state_->rows) rows.push_back(row);
  std::ranges::sort(rows, std::greater<>(), &OperatorRow::seconds);
  return rows;
}

}  // namespace chexnet
