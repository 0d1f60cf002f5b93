// Lambdas as one visitor of a std::variant.
#pragma once

namespace chexnet {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...)
    -> Overloaded<F...>;  // clang before 17 does not find it by itself

}  // namespace chexnet
