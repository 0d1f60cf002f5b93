// Counts a scope's calls of ATen: each call costs the host a few microseconds,
// on a GPU most calls launch a kernel, and a value that the host reads makes it
// wait for the GPU. Counts on a CPU are those on a GPU as far as the code
// before the operators is the same.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace chexnet {

class OperatorHook;

struct OperatorCounts {
  int64_t operators = 0;   // that our code calls
  int64_t views = 0;       // of these, other shapes of the same values
  int64_t dispatched = 0;  // with those that operators call
  int64_t allocations = 0, allocated_bytes = 0;  // of tensors
  int64_t host_reads = 0;  // our code waits for a value of the device
  // Operands of convolutions: activations, weights and gradients.
  int64_t convolution_operands = 0;
  int64_t unaligned_operands = 0;  // not at a multiple of 16 bytes
  int64_t strided_operands = 0;    // neither channels-last nor fp64's NCHW
  int64_t concatenations = 0;
  int64_t narrow_concatenations = 0;  // CUDA copies less than 16 bytes at once
};

// Counts from construction on, for the thread that made it. One at a time.
class OperatorAudit {
 public:
  OperatorAudit();
  ~OperatorAudit();
  OperatorAudit(const OperatorAudit&) = delete;
  OperatorAudit& operator=(const OperatorAudit&) = delete;
  const OperatorCounts& counts() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  c10::DebugInfoGuard guard_;
  std::unique_ptr<OperatorHook> hook_;
};

}  // namespace chexnet
