// The shapes of an operator's results, before its kernel is done.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fake_gpu {

using torch::jit::Stack;

struct Shape {
  bool defined = false;
  std::vector<int64_t> sizes, strides;
  at::ScalarType type = at::kFloat;
};
// An operator's results for inputs of certain shapes, types and values of the
// host.
struct Plan {
  std::vector<std::vector<Shape>> results;    // [return][tensor], of new ones
  std::vector<std::optional<Shape>> resized;  // [argument] that changed shape
  bool gives_values = false;  // a result is no tensor: the host has to wait
};

// Computed at the first call with such arguments; lives for ever.
const Plan& plan_of(const c10::OperatorHandle& op, const Stack& arguments);

// The operator by the CPU's implementation, on tensors of the CPU.
void call_on_cpu(const c10::OperatorHandle& op, Stack& stack);

bool is_written(const c10::FunctionSchema& schema, size_t argument);
// The argument that a result is, for operators in place and with `out`.
std::optional<size_t> argument_of(const c10::FunctionSchema& schema,
                                  size_t result);

bool on_device(const at::Tensor& tensor);
// A number of the host in an operator among device tensors; its value is taken
// when the operator is launched, as an argument of a CUDA kernel.
at::Tensor host_number(const at::Tensor& tensor);

// Calls `with` for each tensor of an argument, and replaces it by the result;
// the argument is a copy.
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

}  // namespace fake_gpu
