// The callbacks of LibTorch's dispatcher around each operator (RecordFunction),
// for the counts and the times of operators.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstdint>

namespace chexnet {

using OperatorValues = c10::ArrayRef<const c10::IValue>;

// `ours`: our code calls the operator, and not another operator.
class OperatorListener {
 public:
  virtual ~OperatorListener() = default;
  virtual void began(const at::RecordFunction& call, OperatorValues inputs,
                     bool ours) = 0;
  virtual void ended(const at::RecordFunction& call, OperatorValues outputs,
                     bool ours);
};

// Tells `listener`, which outlives it, from construction on, for the thread
// that made it. One at a time.
class OperatorHook {
 public:
  explicit OperatorHook(OperatorListener& listener);
  ~OperatorHook();
  OperatorHook(const OperatorHook&) = delete;
  OperatorHook& operator=(const OperatorHook&) = delete;

 private:
  uint64_t handle_;
};

}  // namespace chexnet
