// Time and bytes of each of ATen's operators that our code calls in a scope, as
// layers of the engine have in LayerTimes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chexnet {

class OperatorHook;

struct OperatorRow {
  // "aten::convolution"; with ", 100 MB" where a tensor is as large
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  int64_t bytes = 0;  // of its tensors, read and written once
};

// Times from construction on, for the thread that made it. One at a time, and
// none beside an OperatorAudit.
class OperatorTimes {
 public:
  // `wait` returns when the device has done all launched work.
  explicit OperatorTimes(std::function<void()> wait);
  ~OperatorTimes();
  OperatorTimes(const OperatorTimes&) = delete;
  OperatorTimes& operator=(const OperatorTimes&) = delete;
  std::vector<OperatorRow> rows() const;  // longest first

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::unique_ptr<OperatorHook> hook_;
};

}  // namespace chexnet
