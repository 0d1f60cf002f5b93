// JSON that strangers wrote, looked at before memory is taken for it: brackets
// nested by the thousand overflow the stack of the code that writes them again,
// and each of millions of numbers needs eight times its text.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace chexnet {

struct JsonLimits {
  size_t depth = 32;
  size_t values = 200'000;  // keys, numbers, texts, lists and objects
};

// Why `text` is not to be parsed: nested deeper, more values, or a key twice in
// one object. Empty where it may be, and where it is no JSON, which its parser
// says.
std::string json_problem(std::string_view text, const JsonLimits& limits);

// std::runtime_error with the problem; nlohmann::json::exception where it is no
// JSON.
nlohmann::json checked_json(std::string_view text, const JsonLimits& limits);

}  // namespace chexnet
