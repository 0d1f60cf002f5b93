// An operator of our library in LibTorch's dispatcher, with the signature of
// what computes it by ATen's operators.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <type_traits>

namespace chexnet {

template <auto kByAten>
auto operator_of(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("chexnet::") + name).c_str(), "")
      .typed<std::remove_pointer_t<decltype(kByAten)>>();
}

// With `kernels` the operator of this name, else kByAten itself.
template <auto kByAten, class... Arguments>
auto compute(const char* name, bool kernels, Arguments&&... arguments) {
  static const auto op = operator_of<kByAten>(name);
  return kernels ? op.call(arguments...) : kByAten(arguments...);
}

}  // namespace chexnet
