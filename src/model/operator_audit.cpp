// Two hooks of LibTorch: RecordFunction, which the dispatcher calls around each
// operator, and the profiler's report of memory, which allocators call. An
// operator may call others, so both ends of a call move a depth; what our code
// asks for has depth 0.
#include "chexnet/model/operator_audit.hpp"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <cassert>

namespace chexnet {
namespace {

constexpr std::uintptr_t kAlignment = 16;  // cuDNN's, for tensor cores
// Where allocators look for whom to tell.
constexpr auto kMemoryReports = c10::DebugInfoKind::PROFILER_STATE;

// Returns its input under another shape and touches no value.
bool is_view(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& r) {
    return r.alias_info() != nullptr && !r.alias_info()->isWrite();
  });
}

// The host reads a scalar, or waits for a copy to or from a device. Operators
// on the CPU may read scalars of their own, which would lie on a device there:
// of these only our own calls count.
bool waits_for_device(const std::string& name,
                      c10::ArrayRef<const c10::IValue> inputs, bool ours) {
  if (name == "aten::item" || name == "aten::_local_scalar_dense" ||
      name == "aten::is_nonzero" || name == "aten::equal")
    return ours;
  if (name != "aten::copy_" || inputs.size() < 3 || !inputs[2].isBool())
    return false;
  const bool moves =
      inputs[0].toTensor().device() != inputs[1].toTensor().device();
  return moves && !inputs[2].toBool();
}

bool is_dense(const at::Tensor& t) {
  return t.is_contiguous(at::MemoryFormat::ChannelsLast) ||
         (t.scalar_type() == at::kDouble && t.is_contiguous());
}

}  // namespace

struct OperatorAudit::State : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device) override {
    if (bytes <= 0) return;  // given back
    ++counts.allocations;
    counts.allocated_bytes += bytes;
  }
  bool memoryProfilingEnabled() const override { return true; }

  void began(const at::RecordFunction& call) {
    const bool ours = depth++ == 0;
    const std::string name = call.name();
    ++counts.dispatched;
    if (waits_for_device(name, call.inputs(), ours)) ++counts.host_reads;
    if (name == "aten::convolution" || name == "aten::convolution_backward")
      look_at_operands(call.inputs());
    if (!ours) return;
    ++counts.operators;
    const auto schema = call.operator_schema();
    if (schema && is_view(*schema)) ++counts.views;
  }
  void look_at_operands(c10::ArrayRef<const c10::IValue> inputs) {
    for (const auto& input : inputs) {
      if (!input.isTensor() || !input.toTensor().defined()) continue;
      const at::Tensor& operand = input.toTensor();
      const auto address =
          reinterpret_cast<std::uintptr_t>(operand.const_data_ptr());
      ++counts.convolution_operands;
      if (address % kAlignment != 0) ++counts.unaligned_operands;
      if (!is_dense(operand)) ++counts.strided_operands;
    }
  }

  OperatorCounts counts;
  std::int64_t depth = 0;
};

namespace {

// The hooks are plain functions, which get no argument of ours.
thread_local OperatorAudit::State* current = nullptr;

std::unique_ptr<at::ObserverContext> call_began(const at::RecordFunction& f) {
  current->began(f);
  return nullptr;
}
void call_ended(const at::RecordFunction&, at::ObserverContext*) {
  --current->depth;
}

}  // namespace

OperatorAudit::OperatorAudit()
    : state_(std::make_shared<State>()), guard_(kMemoryReports, state_) {
  assert(current == nullptr);
  current = state_.get();
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(call_began, call_ended)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

OperatorAudit::~OperatorAudit() {
  at::removeCallback(handle_);
  current = nullptr;
}

const OperatorCounts& OperatorAudit::counts() const { return state_->counts; }

}  // namespace chexnet
