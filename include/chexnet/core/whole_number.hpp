// Whole numbers of JSON files, which anybody may have changed. JSON's numbers
// have fractions and any size; nlohmann's get() casts them, and a cast of a
// value that does not fit is undefined in C++.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace chexnet {

// std::out_of_range unless `json` is a whole number that `Whole` can hold.
template <class Whole, class AnyJson>
Whole whole_number(const AnyJson& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.template get<uint64_t>();
    if (std::in_range<Whole>(value)) return static_cast<Whole>(value);
  } else if (json.is_number_integer()) {
    const auto value = json.template get<int64_t>();
    if (std::in_range<Whole>(value)) return static_cast<Whole>(value);
  }
  throw std::out_of_range("not a whole number of its range");
}

}  // namespace chexnet
