// An operator becomes a kernel: its outputs are made from the plan, its
// arguments kept as views that own nothing, and the CPU's implementation is
// called by the stream's thread.
#include "fakes/fake_gpu/fallback.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/resize_native.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "fakes/fake_gpu/allocator.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "fakes/fake_gpu/memory.hpp"
#include "fakes/fake_gpu/plan.hpp"

namespace fake_gpu {
namespace {

// An operator's arguments, kept for its kernel.
struct Argument {
  c10::IValue value;              // where it holds no device tensor
  std::vector<TensorView> views;  // of the device tensors, in order
};

Argument kept(const c10::IValue& value) {
  Argument argument;
  argument.value = mapped(value, [&](const at::Tensor& tensor) -> at::Tensor {
    if (!on_device(tensor)) return host_number(tensor);
    argument.views.emplace_back(tensor);
    return {};  // put back by unpacked()
  });
  return argument;
}

// The argument as the CPU's operator takes it.
c10::IValue unpacked(const c10::IValue& shell, const Argument& argument) {
  if (argument.views.empty()) return shell;
  if (shell.isTensor()) return argument.views[0].for_kernel();
  size_t next = 0;
  if (shell.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : shell.toTensorVector())
      list.push_back(tensor.defined() ? tensor
                                      : argument.views[next++].for_kernel());
    return list;
  }
  c10::List<std::optional<at::Tensor>> list;
  for (const std::optional<at::Tensor> tensor : shell.toOptionalTensorList())
    list.push_back(tensor && !tensor->defined()
                       ? argument.views[next++].for_kernel()
                       : tensor);
  return list;
}

void copy_result(const at::Tensor& from, const TensorView& to) {
  TORCH_CHECK(from.sizes() == at::IntArrayRef(to.sizes),
              "the shape of a result depends on values: ", from.sizes(),
              " instead of ", at::IntArrayRef(to.sizes));
  to.for_kernel().copy_(from);
}

// New outputs, and where the kernel puts them.
struct Outputs {
  std::vector<c10::IValue> values;             // [return]
  std::vector<std::vector<TensorView>> views;  // [return]
};

at::Tensor make_output(const Shape& shape, c10::Device device) {
  if (!shape.defined) return {};
  return at::empty_strided(
      shape.sizes, shape.strides,
      at::TensorOptions().dtype(shape.type).device(device));
}

Outputs make_outputs(const c10::FunctionSchema& schema, const Plan& plan,
                     const Stack& arguments, c10::Device device) {
  Outputs outputs;
  for (size_t r = 0; r < schema.returns().size(); ++r) {
    outputs.views.emplace_back();
    if (const auto argument = argument_of(schema, r)) {
      outputs.values.push_back(arguments[*argument]);
      continue;
    }
    std::vector<at::Tensor> made;
    for (const Shape& shape : plan.results[r])
      made.push_back(make_output(shape, device));
    for (const at::Tensor& tensor : made)
      if (tensor.defined()) outputs.views[r].emplace_back(tensor);
    if (schema.returns()[r].type()->kind() == c10::TypeKind::ListType)
      outputs.values.emplace_back(made);
    else
      outputs.values.emplace_back(made.empty() ? at::Tensor() : made[0]);
  }
  return outputs;
}

// What a kernel needs, and the values it gives where the host waits for them.
struct Call {
  c10::OperatorHandle op;
  std::vector<Argument> arguments;
  std::vector<std::vector<TensorView>> results;
  Stack values = {};

  void run() {
    Stack stack;
    for (const Argument& argument : arguments)
      stack.push_back(unpacked(argument.value, argument));
    call_on_cpu(op, stack);
    for (size_t r = 0; r < results.size(); ++r) {
      size_t next = 0;
      if (results[r].empty()) continue;
      if (stack[r].isTensor()) {
        copy_result(stack[r].toTensor(), results[r][0]);
        continue;
      }
      for (const at::Tensor& tensor : stack[r].toTensorVector())
        if (tensor.defined()) copy_result(tensor, results[r][next++]);
    }
    values = std::move(stack);
  }
};

c10::Device device_of(const Stack& arguments) {
  std::optional<c10::Device> device;
  for (const c10::IValue& value : arguments)
    mapped(value, [&](const at::Tensor& tensor) {
      if (on_device(tensor) && !device) device = tensor.device();
      return tensor;
    });
  TORCH_CHECK(device, "fake GPU: an operator without a tensor of the device");
  return *device;
}

// Whether an operator reads what it writes: one that works in place.
bool updates(const Call& call) {
  const c10::FunctionSchema& schema = call.op.schema();
  if (const auto adds = schema.argumentIndexWithName("adds"))
    return call.arguments[static_cast<size_t>(*adds)].value.toBool();
  return schema.name().ends_with('_') && schema.name() != "aten::copy_";
}

// Bytes that pass between memory and the kernel, each operand once.
size_t traffic_of(const Call& call) {
  const c10::FunctionSchema& schema = call.op.schema();
  const bool reads_written = updates(call);
  size_t bytes = 0;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    for (const TensorView& view : call.arguments[i].views)
      bytes +=
          (is_written(schema, i) && reads_written ? 2 : 1) * view.own_bytes();
  for (const auto& views : call.results)
    for (const TensorView& view : views) bytes += view.own_bytes();
  // Two kernels, one for each gradient.
  if (schema.name() == "aten::convolution_backward_overrideable" &&
      !call.results[0].empty() && !call.results[1].empty())
    bytes += call.arguments[0].views[0].own_bytes();
  return bytes;
}

std::vector<RaceDetector::Range> ranges_of(const c10::FunctionSchema& schema,
                                           const Call& call) {
  std::vector<RaceDetector::Range> ranges;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    for (const TensorView& view : call.arguments[i].views) {
      ranges.push_back(view.range(Use::kRead));
      if (is_written(schema, i)) ranges.push_back(view.range(Use::kWrite));
    }
  for (const auto& views : call.results)
    for (const TensorView& view : views)
      ranges.push_back(view.range(Use::kWrite));
  return ranges;
}

}  // namespace

TensorView::TensorView(const at::Tensor& tensor)
    : sizes(tensor.sizes().vec()),
      strides(tensor.strides().vec()),
      type(tensor.scalar_type()) {
  if (tensor.numel() == 0) return;
  data = const_cast<void*>(tensor.const_data_ptr());
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  bytes = static_cast<size_t>(last + 1) * tensor.element_size();
}

size_t TensorView::own_bytes() const {
  size_t bytes = c10::elementSize(type);
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(size);
  return bytes;
}

at::Tensor TensorView::for_kernel() const {
  return at::from_blob(kernel_view(data), sizes, strides,
                       at::TensorOptions().dtype(type));
}

void note_traffic(const std::string& name, size_t bytes) {
  static std::FILE* const log = [] {
    const char* const path = std::getenv("FAKE_GPU_TRAFFIC");
    return path == nullptr ? nullptr : std::fopen(path, "w");
  }();
  if (log == nullptr) return;
  std::fprintf(log, "%zu %zu %s\n", bytes, bytes_in_use(), name.c_str());
  std::fflush(log);
}

// LibTorch's function would grow the memory as if it were the host's.
void resize_tensor(const at::Tensor& tensor, at::IntArrayRef sizes,
                   std::optional<at::MemoryFormat> memory_format) {
  const size_t bytes = at::detail::computeStorageNbytesContiguous(
      sizes, tensor.element_size(),
      static_cast<size_t>(tensor.storage_offset()));
  if (bytes > tensor.storage().nbytes())
    resize_storage(tensor.storage(), bytes);
  at::native::resize_(tensor, sizes, memory_format);
}

void run_as_kernel(const c10::OperatorHandle& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  const Stack arguments(stack->end() - static_cast<ptrdiff_t>(count),
                        stack->end());
  const c10::Device device = device_of(arguments);
  const c10::DeviceGuard guard(device);
  const Plan& plan = plan_of(op, arguments);
  for (size_t i = 0; i < count; ++i)
    if (plan.resized[i])
      resize_tensor(arguments[i].toTensor(), plan.resized[i]->sizes,
                    std::nullopt);

  Outputs outputs = make_outputs(schema, plan, arguments, device);
  const auto call = std::make_shared<Call>(Call{op, {}, outputs.views});
  for (const c10::IValue& value : arguments)
    call->arguments.push_back(kept(value));
  const std::string& name = schema.name();
  note_traffic(name, traffic_of(*call));
  launch(name, ranges_of(schema, *call), [call] { call->run(); });
  if (plan.gives_values) {
    wait_for_current_stream();
    for (size_t r = 0; r < outputs.values.size(); ++r)
      if (!argument_of(schema, r) && outputs.views[r].empty())
        outputs.values[r] = call->values[r];
  }
  torch::jit::drop(*stack, count);
  for (c10::IValue& value : outputs.values) stack->push_back(std::move(value));
}

}  // namespace fake_gpu
