// The host must give an operator's outputs their shapes before its kernel has
// run. Structured operators bring a function for that, and come here with their
// outputs made. For the others the operator runs once on the host, on zeros of
// the inputs' shapes, and what came out is remembered for all later calls with
// such inputs:
//
//   host     plan(op, shapes) -> empty outputs -> launch           -> returns
//   stream                                         ... CPU kernel, copies into
//                                                      the outputs
//
// So the host never needs a value to go on. Where the shape depends on values,
// plan and kernel disagree, and the kernel fails with a message.
#include "fakes/fake_gpu/fallback.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/resize_native.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "fakes/fake_gpu/allocator.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "fakes/fake_gpu/memory.hpp"

namespace fake_gpu {
namespace {

using torch::jit::Stack;

constexpr c10::DispatchKeySet kCpu(c10::DispatchKey::CPU);

// What the schema does not say: training writes the running statistics.
bool writes_unsaid(const c10::FunctionSchema& schema, std::size_t argument) {
  return schema.name() == "aten::native_batch_norm" &&
         (argument == 3 || argument == 4);
}

bool is_written(const c10::FunctionSchema& schema, std::size_t argument) {
  const c10::AliasInfo* alias = schema.arguments()[argument].alias_info();
  return (alias != nullptr && alias->isWrite()) ||
         writes_unsaid(schema, argument);
}

// The argument that a result is, for operators in place and with `out`.
std::optional<std::size_t> argument_of(const c10::FunctionSchema& schema,
                                       std::size_t result) {
  const c10::AliasInfo* alias = schema.returns()[result].alias_info();
  if (alias == nullptr) return std::nullopt;
  TORCH_CHECK(alias->isWrite(), "fake GPU: ", schema.name(),
              " gives a view and needs an entry of its own");
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* of = schema.arguments()[i].alias_info();
    if (of != nullptr && of->beforeSets() == alias->beforeSets()) return i;
  }
  TORCH_CHECK(false, "fake GPU: ", schema.name(), " returns no argument");
}

bool is_dense(const at::Tensor& tensor) {
  return tensor.device().is_privateuseone();
}

// Calls `with` for each tensor of an argument, and puts what it returns in its
// place; the argument is a copy.
template <class With>
c10::IValue mapped(const c10::IValue& value, const With& with) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() ? with(tensor) : value;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(tensor.defined() ? with(tensor) : tensor);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList())
      list.push_back(tensor && tensor->defined()
                         ? std::optional<at::Tensor>(with(*tensor))
                         : tensor);
    return list;
  }
  if (value.isDevice()) return c10::Device(c10::kCPU);
  return value;
}

// A number of the host in an operator among device tensors; its value is taken
// when the operator is launched, as an argument of a CUDA kernel.
at::Tensor host_number(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_cpu() && tensor.dim() == 0,
              "Expected all tensors to be on the same device, but found at "
              "least two devices, fake and ",
              tensor.device(), "!");
  const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  at::Tensor copy = tensor.clone();
  copy.unsafeGetTensorImpl()->set_wrapped_number(wrapped);
  return copy;
}

// An operator's arguments, kept for its kernel.
struct Argument {
  c10::IValue value;              // where it holds no device tensor
  std::vector<TensorView> views;  // of the device tensors, in order
};

// The calls of an operator on threads of streams, and on the host's zeros.
void call_on_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  // A convolution that names a back end of its own is an ordinary one here.
  const std::string& name = op.schema().name();
  if (name == "aten::convolution_overrideable") {
    static const auto convolution =
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
    convolution.callBoxed(stack);
    return;
  }
  if (name == "aten::convolution_backward_overrideable") {
    static const auto backward = c10::Dispatcher::singleton().findSchemaOrThrow(
        "aten::convolution_backward", "");
    // (…, weight, bias sizes, stride, …)
    stack.insert(stack.end() - 7, c10::IValue());
    if (stack.back().toBoolList()[2]) {
      const std::int64_t channels = stack[stack.size() - 11].toTensor().size(1);
      stack[stack.size() - 8] = c10::List<std::int64_t>({channels});
    }
    backward.callBoxed(stack);
    return;
  }
  op.redispatchBoxed(kCpu, &stack);
}

struct Shape {
  bool defined = false;
  std::vector<std::int64_t> sizes, strides;
  at::ScalarType type = at::kFloat;
};
Shape shape_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {true, tensor.sizes().vec(), tensor.strides().vec(),
          tensor.scalar_type()};
}

// What an operator makes of such inputs.
struct Plan {
  std::vector<std::vector<Shape>> results;    // [return][tensor], of new ones
  std::vector<std::optional<Shape>> resized;  // [argument] that changed shape
  bool gives_values = false;  // a result is no tensor: the host has to wait
};

void describe(std::string& text, const at::Tensor& tensor) {
  text += c10::toString(tensor.scalar_type());
  for (const auto n : tensor.sizes()) (text += ',') += std::to_string(n);
  text += ';';
  for (const auto n : tensor.strides()) (text += ',') += std::to_string(n);
  text += is_dense(tensor) ? '|' : '#';
}

std::string key_of(const c10::OperatorHandle& op, const Stack& arguments) {
  std::string text = op.schema().name() + "." + op.schema().overload_name();
  for (const c10::IValue& value : arguments) {
    text += '/';
    bool tensors = false;
    mapped(value, [&](const at::Tensor& tensor) {
      describe(text, tensor);
      tensors = true;
      return tensor;
    });
    if (tensors || value.isTensor() || value.isDevice()) continue;
    std::ostringstream out;
    out << value;
    text += out.str();
  }
  return text;
}

Plan make_plan(const c10::OperatorHandle& op, const Stack& arguments) {
  const c10::FunctionSchema& schema = op.schema();
  Stack stack;
  for (const c10::IValue& value : arguments)
    stack.push_back(mapped(value, [](const at::Tensor& tensor) {
      if (!is_dense(tensor)) return host_number(tensor);
      return at::empty_strided(tensor.sizes(), tensor.strides(),
                               tensor.options().device(at::kCPU))
          .zero_();
    }));
  const Stack zeros = stack;
  call_on_cpu(op, stack);
  Plan plan;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    plan.resized.emplace_back();
    if (!is_written(schema, i) || !arguments[i].isTensor()) continue;
    const Shape after = shape_of(zeros[i].toTensor());
    if (after.sizes != arguments[i].toTensor().sizes()) plan.resized[i] = after;
  }
  for (std::size_t r = 0; r < schema.returns().size(); ++r) {
    plan.results.emplace_back();
    if (argument_of(schema, r)) continue;
    if (stack[r].isTensor())
      plan.results[r].push_back(shape_of(stack[r].toTensor()));
    else if (stack[r].isTensorList())
      for (const at::Tensor& tensor : stack[r].toTensorVector())
        plan.results[r].push_back(shape_of(tensor));
    else
      plan.gives_values = true;
  }
  return plan;
}

const Plan& plan_of(const c10::OperatorHandle& op, const Stack& arguments) {
  static std::mutex mutex;  // guards plans
  static auto* const plans = new std::map<std::string, Plan>;
  const std::string key = key_of(op, arguments);
  {
    const std::lock_guard lock(mutex);
    const auto found = plans->find(key);
    if (found != plans->end()) return found->second;
  }
  Plan plan = make_plan(op, arguments);
  const std::lock_guard lock(mutex);
  return plans->try_emplace(key, std::move(plan)).first->second;
}

Argument kept(const c10::IValue& value) {
  Argument argument;
  argument.value = mapped(value, [&](const at::Tensor& tensor) -> at::Tensor {
    if (!is_dense(tensor)) return host_number(tensor);
    argument.views.emplace_back(tensor);
    return {};  // put back by unpacked()
  });
  return argument;
}

// The argument as the CPU's operator takes it.
c10::IValue unpacked(const c10::IValue& shell, const Argument& argument) {
  if (argument.views.empty()) return shell;
  if (shell.isTensor()) return argument.views[0].for_kernel();
  std::size_t next = 0;
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
  for (std::size_t r = 0; r < schema.returns().size(); ++r) {
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
    for (std::size_t r = 0; r < results.size(); ++r) {
      std::size_t next = 0;
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
      if (is_dense(tensor) && !device) device = tensor.device();
      return tensor;
    });
  TORCH_CHECK(device, "fake GPU: an operator without a tensor of the device");
  return *device;
}

std::vector<RaceDetector::Range> ranges_of(const c10::FunctionSchema& schema,
                                           const Call& call) {
  std::vector<RaceDetector::Range> ranges;
  for (std::size_t i = 0; i < call.arguments.size(); ++i)
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
  std::int64_t last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    last += (sizes[d] - 1) * strides[d];
  bytes = static_cast<std::size_t>(last + 1) * tensor.element_size();
}

at::Tensor TensorView::for_kernel() const {
  return at::from_blob(kernel_view(data), sizes, strides,
                       at::TensorOptions().dtype(type));
}

// LibTorch's own function takes memory that it must grow for the host's.
void resize_tensor(const at::Tensor& tensor, at::IntArrayRef sizes,
                   std::optional<at::MemoryFormat> memory_format) {
  const std::size_t bytes = at::detail::computeStorageNbytesContiguous(
      sizes, tensor.element_size(),
      static_cast<std::size_t>(tensor.storage_offset()));
  if (bytes > tensor.storage().nbytes())
    resize_storage(tensor.storage(), bytes);
  at::native::resize_(tensor, sizes, memory_format);
}

void run_as_kernel(const c10::OperatorHandle& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::size_t count = schema.arguments().size();
  const Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count),
                        stack->end());
  const c10::Device device = device_of(arguments);
  const c10::DeviceGuard guard(device);
  const Plan& plan = plan_of(op, arguments);
  for (std::size_t i = 0; i < count; ++i)
    if (plan.resized[i])
      resize_tensor(arguments[i].toTensor(), plan.resized[i]->sizes,
                    std::nullopt);

  Outputs outputs = make_outputs(schema, plan, arguments, device);
  const auto call = std::make_shared<Call>(Call{op, {}, outputs.views});
  for (const c10::IValue& value : arguments)
    call->arguments.push_back(kept(value));
  const std::string& name = schema.name();
  launch(name, ranges_of(schema, *call), [call] { call->run(); });
  if (plan.gives_values) {
    wait_for_current_stream();
    for (std::size_t r = 0; r < outputs.values.size(); ++r)
      if (!argument_of(schema, r) && outputs.views[r].empty())
        outputs.values[r] = call->values[r];
  }
  torch::jit::drop(*stack, count);
  for (c10::IValue& value : outputs.values) stack->push_back(std::move(value));
}

}  // namespace fake_gpu
