// Two ways of writing bytes that a terminal or a line of a table must not see:
// printable() is for people and need not come back; escaped() writes the
// backslash too, so unescaped() gets any name back.
#include "chexnet/core/plain_text.hpp"

#include <algorithm>
#include <charconv>

namespace chexnet {
namespace {

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

void put_escape(std::string& text, unsigned char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  text += "\\x";
  text += kDigits[c >> 4];
  text += kDigits[c & 15];
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool has_next = i + 1 < text.size();
    const auto next = has_next ? static_cast<unsigned char>(text[i + 1]) : 0;
    // U+0080..9F in UTF-8: some terminals obey them as well.
    const bool is_c1 = c == 0xc2 && next >= 0x80 && next <= 0x9f;
    if (is_c1) {
      put_escape(shown, static_cast<unsigned char>(next));
      ++i;
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
