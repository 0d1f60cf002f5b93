// snprintf and not iostreams: no locale of the user changes a number that other
// programs read.
#include "chexnet/core/text_format.hpp"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace chexnet {

std::string filled_in(std::string_view format,
                      std::initializer_list<FormatPart> parts) {
  std::string text;
  const FormatPart* part = parts.begin();
  for (size_t i = 0; i < format.size(); ++i) {
    const bool is_brace = format[i] == '{' || format[i] == '}';
    if (is_brace) ++i;  // each comes with another
    if (!is_brace || format[i] == format[i - 1])
      text += format[i];
    else
      text += (part++)->text;
  }
  assert(part == parts.end());
  return text;
}

std::string fixed(double value, int digits) {
  constexpr double kAllDigits = 1e15;  // more than a double's are noise
  std::array<char, 64> text{};
  if (std::abs(value) < kAllDigits)
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  else
    std::snprintf(text.data(), text.size(), "%.*e", digits, value);
  return text.data();
}

std::string readable_bytes(double bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fixed(bytes, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string readable_s(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  std::array<char, 48> text{};
  if (s >= 3600)
    std::snprintf(text.data(), text.size(), "%lldh%02lldm", s / 3600,
                  s / 60 % 60);
  else if (s >= 60)
    std::snprintf(text.data(), text.size(), "%lldm%02llds", s / 60, s % 60);
  else
    std::snprintf(text.data(), text.size(), "%llds", s);
  return text.data();
}

namespace {

template <class Number>
std::string shortest(Number value) {
  std::array<char, 40> text{};
  const auto result =
      std::to_chars(text.data(), text.data() + text.size(), value);
  assert(result.ec == std::errc());
  return {text.data(), result.ptr};
}

}  // namespace

std::string number_text(float value) { return shortest(value); }
std::string number_text(double value) { return shortest(value); }

std::string plural_of(const std::string& what) {
  return what.ends_with("study") ? what.substr(0, what.size() - 1) + "ies"
                                 : what + "s";
}

std::string counted(int64_t count, const std::string& what) {
  return std::to_string(count) + " " + (count == 1 ? what : plural_of(what));
}

}  // namespace chexnet
