#include "chexnet/core/json_fault.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

// Where the parser stops, and why: at what is no JSON, or at a number that no
// double holds.
class FirstFault final
    : public nlohmann::detail::json_sax_acceptor<nlohmann::json> {
 public:
  bool parse_error(size_t byte, const std::string& token,
                   const nlohmann::detail::exception& e) {
    constexpr int kNumberOverflow = 406;
    byte_ = byte;
    if (e.id == kNumberOverflow) number_ = token;
    return false;
  }
  // Counted from 1; the end counts as one character.
  size_t byte() const { return byte_; }
  const std::string& number() const { return number_; }

 private:
  size_t byte_ = 0;
  std::string number_;  // the one that is too large
};

}  // namespace

JsonFault json_fault(std::string_view text) {
  FirstFault first;
  if (nlohmann::json::sax_parse(text, &first)) return {};

  const size_t end = text.find_last_not_of(" \t\r\n") + 1;
  const size_t at = std::min(first.byte() > 0 ? first.byte() - 1 : 0, end);
  const auto before = text.substr(0, at);
  JsonFault fault;
  fault.line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
  if (!first.number().empty())
    fault.what = first.number() + " is too large a number";
  else if (end == 0)
    fault.what = "the file is empty";
  else if (at >= end)
    fault.what = "the text ends too early";
  else
    fault.what = "'" + printable(text.substr(at, 1)) + "' cannot stand here";
  return fault;
}

}  // namespace chexnet
