// Lambdas as one visitor of a std::variant.
#pragma once

namespace chexnet {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace chexnet
