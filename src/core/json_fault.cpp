#include "chexnet/core/json_fault.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/plain_text.hpp"

namespace chexnet {

JsonFault json_fault(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  try {
    [[maybe_unused]] const auto parsed = nlohmann::json::parse(text);
    return {};
  } catch (const nlohmann::json::parse_error& e) {
    // Bytes are counted from 1, and the one behind the end is its own.
    const size_t end = text.find_last_not_of(kBlanks) + 1;
    const size_t at = std::min(e.byte > 0 ? e.byte - 1 : 0, end);
    const auto before = text.substr(0, at);
    JsonFault fault;
    fault.line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
    if (end == 0)
      fault.what = "the file is empty";
    else if (at >= end)
      fault.what = "the text ends too early";
    else
      fault.what = "'" + printable(text.substr(at, 1)) + "' cannot stand here";
    return fault;
  }
}

}  // namespace chexnet
