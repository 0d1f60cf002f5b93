// Numbers in files and options.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace chexnet {

// The number that the whole text is, in C's notation and any locale. Nothing
// for other text, blanks around a number, or a value that `Number` cannot hold.
// Floating point numbers may be infinite or NaN.
template <class Number>
std::optional<Number> parsed_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace chexnet
