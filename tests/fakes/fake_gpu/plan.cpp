// The host must give an operator's outputs their shapes before its kernel is
// done. Structured operators bring a function for that, and come here with
// their outputs made. For the others the operator is called once on the host,
// on zeros of the inputs' shapes, and what came out is remembered for all later
// calls with such inputs:
//
//   host     plan(op, shapes) -> empty outputs -> launch           -> returns
//   stream                                         ... CPU kernel, copies into
//                                                      the outputs
//
// So the host never needs a value to go on. Where the shape depends on values,
// plan and kernel disagree, and the kernel fails with a message.
#include "fakes/fake_gpu/plan.hpp"

#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>

namespace fake_gpu {
namespace {

constexpr c10::DispatchKeySet kCpu(c10::DispatchKey::CPU);

// The schema does not say it: training writes the running statistics.
bool writes_unsaid(const c10::FunctionSchema& schema, size_t argument) {
  return schema.name() == "aten::native_batch_norm" &&
         (argument == 3 || argument == 4);
}

Shape shape_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {true, tensor.sizes().vec(), tensor.strides().vec(),
          tensor.scalar_type()};
}

void describe(std::string& text, const at::Tensor& tensor) {
  text += c10::toString(tensor.scalar_type());
  for (const auto n : tensor.sizes()) (text += ',') += std::to_string(n);
  text += ';';
  for (const auto n : tensor.strides()) (text += ',') += std::to_string(n);
  text += on_device(tensor) ? '|' : '#';
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
      if (!on_device(tensor)) return host_number(tensor);
      return at::empty_strided(tensor.sizes(), tensor.strides(),
                               tensor.options().device(at::kCPU))
          .zero_();
    }));
  const Stack zeros = stack;
  call_on_cpu(op, stack);
  Plan plan;
  for (size_t i = 0; i < arguments.size(); ++i) {
    plan.resized.emplace_back();
    if (!is_written(schema, i) || !arguments[i].isTensor()) continue;
    const Shape after = shape_of(zeros[i].toTensor());
    if (after.sizes != arguments[i].toTensor().sizes()) plan.resized[i] = after;
  }
  for (size_t r = 0; r < schema.returns().size(); ++r) {
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

}  // namespace

bool is_written(const c10::FunctionSchema& schema, size_t argument) {
  const c10::AliasInfo* alias = schema.arguments()[argument].alias_info();
  return (alias != nullptr && alias->isWrite()) ||
         writes_unsaid(schema, argument);
}

std::optional<size_t> argument_of(const c10::FunctionSchema& schema,
                                  size_t result) {
  const c10::AliasInfo* alias = schema.returns()[result].alias_info();
  if (alias == nullptr) return std::nullopt;
  TORCH_CHECK(alias->isWrite(), "fake GPU: ", schema.name(),
              " gives a view and needs an entry of its own");
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* of = schema.arguments()[i].alias_info();
    if (of != nullptr && of->beforeSets() == alias->beforeSets()) return i;
  }
  TORCH_CHECK(false, "fake GPU: ", schema.name(), " returns no argument");
}

bool on_device(const at::Tensor& tensor) {
  return tensor.device().is_privateuseone();
}

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

// The calls of an operator on threads of streams, and on the host's zeros.
void call_on_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  // A convolution that names a back end is an ordinary one here.
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
      const int64_t channels = stack[stack.size() - 11].toTensor().size(1);
      stack[stack.size() - 8] = c10::List<int64_t>({channels});
    }
    backward.callBoxed(stack);
    return;
  }
  op.redispatchBoxed(kCpu, &stack);
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

}  // namespace fake_gpu
