// Two ways of writing bytes that a terminal or a line of a table must not see:
// printable() is for people and need not come back; escaped() writes the
// backslash too, so unescaped() gets any name back.
#include "chexnet/core/plain_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace chexnet {
namespace {

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

void put_escape(std::string& text, unsigned char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  text += "\\x";
  text += kDigits[c >> 4];
  text += kDigits[c & 15];
}

// The character that begins `text`, where it has two or three bytes of UTF-8.
struct Character {
  size_t bytes = 0;  // 0: it is another one
  unsigned code = 0;
};

Character first_long_character(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if ((byte(0) & 0xe0) == 0xc0 && continues(1))
    return {2, (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f)};
  if ((byte(0) & 0xf0) == 0xe0 && continues(1) && continues(2))
    return {3,
            (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f)};
  return {};
}

// Line ends, and marks of direction: "gnp.exe" may be shown as "exe.png".
bool moves_text(unsigned code) {
  return code == 0x061c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto [bytes, code] = first_long_character(text.substr(i));
    // Some terminals obey these as well.
    const bool is_c1 = code >= 0x80 && code <= 0x9f;
    if (is_c1) {
      put_escape(shown, static_cast<unsigned char>(code));
      i += bytes - 1;
    } else if (moves_text(code)) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", code);
      shown += escape.data();
      i += bytes - 1;
    } else if (is_control(c) && kept.find(text[i]) == std::string_view::npos) {
      put_escape(shown, c);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const size_t half = most / 2;
  return std::string(text.substr(0, half)) + " ... (" +
         std::to_string(text.size() - 2 * half) + " bytes left out) ... " +
         std::string(text.substr(text.size() - half));
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string lowered(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_control(byte) || c == '\\')
      put_escape(safe, byte);
    else
      safe += c;
  }
  return safe;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 2;
    const bool may_be =
        text.substr(i).starts_with("\\x") && i + 4 <= text.size();
    if (may_be &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      plain += static_cast<char>(value);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace chexnet
