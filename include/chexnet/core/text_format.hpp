// Texts for people: numbers, and formats with placeholders {}.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace chexnet {

// A size: "1.5 GiB".
std::string readable_bytes(double bytes);
// A time: "1h02m", "3m07s", "12s".
std::string readable_s(double seconds);
// "ranks" of "rank", "studies" of "study".
std::string plural_of(const std::string& what);
// "1 rank", "3 ranks"; `what` is one of them.
std::string counted(int64_t count, const std::string& what);
// The shortest text that reads back as the same number.
std::string number_text(float value);
std::string number_text(double value);
// `value` with `digits` after the point; from 1e15 on as "5.12e+29".
std::string fixed(double value, int digits);

// What fills a placeholder: text, or a whole number; fixed() formats others.
struct FormatPart {
  FormatPart(const std::string& part) : text(part) {}
  FormatPart(std::string_view part) : text(part) {}
  FormatPart(const char* part) : text(part) {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>)
      FormatPart(T number)
      : text(std::to_string(number)) {}

  std::string text;
};

// Each {} is a placeholder; {{ and }} are braces. A format with more or fewer
// placeholders than Parts does not compile.
template <class... Parts>
struct FormatOf {
  template <size_t kSize>
  consteval FormatOf(const char (&format)[kSize]) : text(format, kSize - 1) {
    size_t places = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '{' && text[i] != '}') continue;
      const char next = text.substr(i + 1).empty() ? ' ' : text[i + 1];
      if (next != text[i] && (text[i] == '}' || next != '}'))
        throw "a brace that is no place";
      if (next != text[i]) ++places;
      ++i;
    }
    if (places != sizeof...(Parts)) throw "places and parts differ";
  }
  std::string_view text;
};
std::string filled_in(std::string_view format,
                      std::initializer_list<FormatPart> parts);

// formatted("{}:{}: no age", file, line).
template <class... Parts>
std::string formatted(std::type_identity_t<FormatOf<Parts...>> format,
                      const Parts&... parts) {
  return filled_in(format.text, {FormatPart(parts)...});
}

}  // namespace chexnet
