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

constexpr int64_t kLargeMap = 100'000'000;

struct Bytes {
  int64_t all = 0, most = 0;  // of all tensors, and of the largest
  void add(OperatorValues values) {
    for (const auto& value : values) {
      if (value.isTensor() && value.toTensor().defined()) add(value.toTensor());
      if (value.isTensorList())
        for (const at::Tensor& tensor : value.toTensorList()) add(tensor);
    }
  }
  void add(const at::Tensor& tensor) {
    all += static_cast<int64_t>(tensor.nbytes());
    most = std::max(most, static_cast<int64_t>(tensor.nbytes()));
  }
};

}  // namespace

struct OperatorTimes::State final : OperatorListener {
  void began(const at::RecordFunction&, OperatorValues inputs,
             bool ours) override {
    if (!ours) return;
    bytes = {};
    bytes.add(inputs);
    wait();
    start = now_s();
  }
  void ended(const at::RecordFunction& call, OperatorValues outputs,
             bool ours) override {
    if (!ours) return;
    wait();
    const double seconds = now_s() - start;
    bytes.add(outputs);
    const std::string name =
        call.name() + std::string(bytes.most < kLargeMap ? "" : ", 100 MB");
    OperatorRow& row = rows[name];
    row.name = name;
    ++row.calls;
    row.seconds += seconds;
    row.bytes += bytes.all;
  }

  std::function<void()> wait;
  std::map<std::string, OperatorRow> rows;
  double start = 0;
  Bytes bytes;
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
