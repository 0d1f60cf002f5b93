#include "chexnet/core/text_parts.hpp"

namespace chexnet {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    lines.emplace_back(text.substr(0, end));
  return lines;
}

std::string_view first_bytes(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  const auto goes_on = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  size_t end = most;
  while (end > 0 && goes_on(end)) --end;
  return text.substr(0, end);
}

std::string joined_notes(std::string_view a, std::string_view b) {
  std::string all(a);
  if (!a.empty() && !b.empty()) all += "; ";
  return all.append(b);
}

}  // namespace chexnet
