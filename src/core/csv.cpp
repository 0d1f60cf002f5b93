// RFC 4180, with the freedoms of tables in the wild: a byte order mark, CRLF or
// LF, empty lines, line breaks inside quotes. Fields are views of the text.
// Only quoted ones are copied, as "" becomes "; they are set into `fields` at
// the end, when no copy moves any more.
#include "chexnet/core/csv.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {

CsvReader::CsvReader(std::string_view text, std::string name, char separator)
    : rest_(text), name_(std::move(name)), separator_(separator) {
  rest_ = without_byte_order_mark(rest_);
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  while (!rest_.empty() && (rest_.front() == '\n' || rest_.front() == '\r')) {
    if (rest_.front() == '\n') ++line_;
    rest_.remove_prefix(1);
  }
  fields.clear();
  if (rest_.empty()) return false;
  record_line_ = line_;
  unquoted_.clear();
  // (field, index into unquoted_)
  std::vector<std::pair<size_t, size_t>> quoted;
  const std::array<char, 2> ends = {separator_, '\n'};
  const auto end_of_field = [&] {
    return rest_.find_first_of(std::string_view(ends.data(), ends.size()));
  };
  for (;;) {
    if (!rest_.empty() && rest_.front() == '"') {
      rest_.remove_prefix(1);
      std::string value;
      const int opened = line_;
      for (;;) {
        if (rest_.empty())
          throw DataError(
              "[table] {}:{}: a cell begins with a quote that is not closed, "
              "so all behind it would belong to that cell. Hint: close or "
              "remove the quote",
              name_, opened);
        const char c = rest_.front();
        rest_.remove_prefix(1);
        if (c == '\n') ++line_;
        if (c != '"') {
          value += c;
        } else if (!rest_.empty() && rest_.front() == '"') {
          value += '"';
          rest_.remove_prefix(1);
        } else {
          break;
        }
      }
      // Text after the quotes belongs to the field, as in other readers.
      auto more = rest_.substr(0, end_of_field());
      rest_.remove_prefix(more.size());
      if (more.ends_with('\r')) more.remove_suffix(1);
      value += more;
      quoted.emplace_back(fields.size(), unquoted_.size());
      unquoted_.push_back(std::move(value));
      fields.emplace_back();
    } else {
      const size_t end = end_of_field();
      std::string_view field = rest_.substr(0, end);
      rest_.remove_prefix(field.size());
      if (field.ends_with('\r')) field.remove_suffix(1);
      fields.push_back(field);
    }
    if (rest_.empty()) break;
    const char separator = rest_.front();
    rest_.remove_prefix(1);
    if (separator == '\n') {
      ++line_;
      break;
    }
  }
  for (const auto& [field, index] : quoted) fields[field] = unquoted_[index];
  return true;
}

char separator_of(std::string_view text) {
  const auto first = text.find_first_not_of("\xEF\xBB\xBF\r\n");
  if (first == std::string_view::npos) return ',';
  std::array<std::pair<char, int>, 3> counts = {
      {{',', 0}, {';', 0}, {'\t', 0}}};
  bool is_quoted = false;
  int brackets = 0;
  for (const char c : text.substr(first)) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '\n') break;
    if (c == '[') ++brackets;
    if (c == ']') --brackets;
    if (brackets > 0) continue;
    for (auto& [separator, count] : counts) count += c == separator ? 1 : 0;
  }
  // Of equal ones the first.
  return std::ranges::max_element(counts, {},
                                  [](const auto& s) { return s.second; })
      ->first;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_number(float value) {
  return std::isnan(value) ? "" : number_text(value);
}
std::string csv_number(double value) {
  return std::isnan(value) ? "" : number_text(value);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> list_lines(std::string_view text) {
  text = without_byte_order_mark(text);
  std::vector<std::string> lines;
  const bool ends_by_nul = text.find('\0') != std::string_view::npos;
  while (!text.empty()) {
    const auto end = text.find(ends_by_nul ? '\0' : '\n');
    auto line = text.substr(0, end);
    if (!ends_by_nul) line = trimmed(line);
    if (!line.empty()) lines.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

namespace {

// Bytes of the UTF-8 character at the front of `text`; 0 when there is none
// (RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF).
size_t utf8_character(std::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  size_t size = 2;
  if (lead >= 0xE0) size = 3;
  if (lead >= 0xF0) size = 4;
  if (lead < 0xC2 || lead > 0xF4 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F))
    return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
    return 0;
  return size;
}

}  // namespace

size_t line_not_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_character(text.substr(at));
    if (size == 0) {
      const auto before = text.substr(0, at);
      return 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
    }
    at += size;
  }
  return 0;
}

}  // namespace chexnet
