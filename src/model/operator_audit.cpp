// Two sources of LibTorch: the dispatcher's calls (operator_hook.hpp), and the
// profiler's report of memory, which allocators call.
#include "chexnet/model/operator_audit.hpp"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <c10/core/Allocator.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <vector>

#include "operator_hook.hpp"

namespace chexnet {
namespace {

// cuDNN's, for tensor cores, and of CUDA's widest copy.
constexpr uintptr_t kAlignment = 16;
// Where allocators look for whom to tell.
constexpr auto kMemoryReports = c10::DebugInfoKind::PROFILER_STATE;

// Returns its input under another shape and touches no value.
bool is_view(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& r) {
    return r.alias_info() != nullptr && !r.alias_info()->isWrite();
  });
}

// The host reads a scalar, or waits for a copy to or from a device. Operators
// on the CPU may read scalars that would lie on a device there: of these only
// calls by our code count.
bool waits_for_device(const std::string& name, OperatorValues inputs,
                      bool ours) {
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

bool is_aligned(const at::Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.const_data_ptr()) % kAlignment == 0;
}

// What parallel_cat in ATen/native/cuda/Shape.cu requires of each tensor before
// it copies 16 bytes at once: it is contiguous, which a channels-last map is
// not, and the slice of one index before `dim` is a multiple of 16 bytes.
bool is_wide(const at::Tensor& t, int64_t dim) {
  const int64_t outer = c10::size_to_dim_(dim, t.sizes());
  return t.is_contiguous() && is_aligned(t) &&
         t.nbytes() / static_cast<size_t>(outer) % kAlignment == 0;
}

// While memory is reported LibTorch would warn of each piece that it has not
// seen begin.
class QuietLibrary {
 public:
  QuietLibrary() : before_(FLAGS_caffe2_log_level) {
    FLAGS_caffe2_log_level = std::max(before_, c10::GLOG_ERROR);
  }
  ~QuietLibrary() { FLAGS_caffe2_log_level = before_; }
  QuietLibrary(const QuietLibrary&) = delete;
  QuietLibrary& operator=(const QuietLibrary&) = delete;

 private:
  int before_;
};

}  // namespace

struct OperatorAudit::State final : c10::MemoryReportingInfoBase,
                                    OperatorListener {
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t,
                         c10::Device) override {
    if (bytes <= 0) return;  // given back
    ++counts.allocations;
    counts.allocated_bytes += bytes;
  }
  bool memoryProfilingEnabled() const override { return true; }

  void began(const at::RecordFunction& call, OperatorValues inputs,
             bool ours) override {
    const std::string name = call.name();
    ++counts.dispatched;
    if (waits_for_device(name, inputs, ours)) ++counts.host_reads;
    if (name == "aten::convolution" || name == "aten::convolution_backward")
      look_at_operands(inputs);
    if (ours && name == "aten::cat") look_at_parts(inputs);
    if (!ours) return;
    ++counts.operators;
    const auto schema = call.operator_schema();
    if (schema && is_view(*schema)) ++counts.views;
  }
  void look_at_operands(OperatorValues inputs) {
    for (const auto& input : inputs) {
      if (!input.isTensor() || !input.toTensor().defined()) continue;
      const at::Tensor& operand = input.toTensor();
      ++counts.convolution_operands;
      if (!is_aligned(operand)) ++counts.unaligned_operands;
      if (!is_dense(operand)) ++counts.strided_operands;
    }
  }
  void look_at_parts(OperatorValues inputs) {
    const int64_t dim = inputs[1].toInt();
    const std::vector<at::Tensor> parts = inputs[0].toTensorVector();
    ++counts.concatenations;
    if (!std::ranges::all_of(
            parts, [&](const at::Tensor& t) { return is_wide(t, dim); }))
      ++counts.narrow_concatenations;
  }

  OperatorCounts counts;
  QuietLibrary quiet;
};

OperatorAudit::OperatorAudit()
    : state_(std::make_shared<State>()),
      guard_(kMemoryReports, state_),
      hook_(std::make_unique<OperatorHook>(*state_)) {}

OperatorAudit::~OperatorAudit() = default;

const OperatorCounts& OperatorAudit::counts() const { return state_->counts; }

}  // namespace chexnet
