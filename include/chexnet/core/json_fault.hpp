// What is wrong with a text that should be JSON, for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace chexnet {

struct JsonFault {
  size_t line = 0;   // 1-based; 0: it is JSON
  std::string what;  // "the text ends too early", "'}' cannot stand here"
};
JsonFault json_fault(std::string_view text);

}  // namespace chexnet
