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

}  // namespace chexnet
