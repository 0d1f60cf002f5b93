#include "script_template.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace chexnet {
namespace {

// "@NAME@" of capitals and underscores; "${words[@]}" of the shell is none.
bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || c == '_';
  });
}

// The NAME of a line that is "#@NAME@".
std::optional<std::string> name_of_block(const std::string& line) {
  if (!line.starts_with("#@") || !line.ends_with('@')) return std::nullopt;
  const std::string name = line.substr(2, line.size() - 3);
  return is_name(name) ? std::optional(name) : std::nullopt;
}

const std::string& value_of(const std::map<std::string, std::string>& values,
                            const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end())
    throw std::logic_error("a script's @" + name + "@ has no value");
  return found->second;
}

std::string filled_line(const std::string& line, const TemplateValues& values) {
  std::string out;
  size_t at = 0;
  for (auto open = line.find('@'); open != std::string::npos;
       open = line.find('@', open + 1)) {
    const auto close = line.find('@', open + 1);
    if (close == std::string::npos) break;
    const std::string name = line.substr(open + 1, close - open - 1);
    if (!is_name(name)) continue;
    out += line.substr(at, open - at) + value_of(values.texts, name);
    at = close + 1;
    open = close;
  }
  return out + line.substr(at) + "\n";
}

}  // namespace

std::string filled(const std::string& script, const TemplateValues& values) {
  std::string out;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    const auto block = name_of_block(line);
    out += block ? value_of(values.lines, *block) : filled_line(line, values);
  }
  return out;
}

}  // namespace chexnet
