#include "chexnet/core/csv.hpp"

#include <utility>

namespace chexnet {

CsvReader::CsvReader(std::string_view text) : rest_(text) {
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
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
  std::vector<std::pair<std::size_t, std::size_t>> quoted;  // (field, index into unquoted_)
  for (;;) {
    if (!rest_.empty() && rest_.front() == '"') {
      rest_.remove_prefix(1);
      std::string value;
      while (!rest_.empty()) {
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
      quoted.emplace_back(fields.size(), unquoted_.size());
      unquoted_.push_back(std::move(value));
      fields.emplace_back();
    } else {
      const std::size_t end = rest_.find_first_of(",\n");
      std::string_view field = rest_.substr(0, end);
      rest_.remove_prefix(field.size());
      if (field.ends_with('\r')) field.remove_suffix(1);
      fields.push_back(field);
    }
    if (!rest_.empty() && rest_.front() == '\r') rest_.remove_prefix(1);
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

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> list_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    if (!line.empty()) lines.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace chexnet
