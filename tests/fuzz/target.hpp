// A fuzz target feeds bytes to one parser and checks what must hold of the
// outcome. fuzzer.cpp makes a libFuzzer program of one target;
// regressions_test.cpp runs all of them on their seeds and on the files that
// once broke them.
//
//   const Registered kTarget{{.name = "tar", .run = run}};
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/core/error.hpp"

namespace chexnet::fuzz {

using Bytes = std::span<const std::byte>;

struct Target {
  const char* name;  // also of its folder in regressions/
  // Throws, or is ended by a sanitizer, where the parser is wrong.
  void (*run)(Bytes);
  // Makes the checksums of a changed input right again, so that the code after
  // their check sees the change; null: it has none.
  void (*mend)(std::vector<std::byte>&) = nullptr;
  // Small inputs to begin with.
  std::vector<std::string> (*seeds)() = nullptr;
};

inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

struct Registered {
  explicit Registered(const Target& target) { targets().push_back(target); }
};

// A broken promise of a parser. No chexnet::Error: nothing here catches it.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const char* what) {
  if (!holds) throw Broken(what);
}

// Whether `action` came to its end. It may refuse its input by one of the named
// errors; any other exception goes on to the fuzzer.
template <class... Refusals, class Action>
bool accepted(const Action& action) {
  try {
    action();
    return true;
  } catch (const Error& e) {
    const bool foreseen =
        (... || (dynamic_cast<const Refusals*>(&e) != nullptr));
    if (!foreseen) throw;
    require(std::string_view(e.what()).find("Hint: ") != std::string_view::npos,
            "an error has a hint");
    return false;
  }
}

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// A text with NULs in it.
template <size_t kSize>
std::string raw(const char (&text)[kSize]) {
  return {text, kSize - 1};
}

// Takes an input apart into small numbers and what is left.
class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}
  // 0 when nothing is left.
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = std::to_integer<uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }
  // low <= the number <= high.
  int number(int low, int high) {
    const int raw = byte() << 8 | byte();
    return low + raw % (high - low + 1);
  }
  // Of a picture, 1 to `most`. Seven of eight are small: time goes by area.
  int side(int most) {
    const int any = number(1, most);
    return byte() % 8 == 0 ? any : 1 + any % std::min(most, 40);
  }
  // Up to the next `mark`, which is passed over.
  std::string until(char mark) {
    const std::string text = text_of(rest_);
    const auto end = text.find(mark);
    rest_ = rest_.subspan(end == std::string::npos ? rest_.size() : end + 1);
    return text.substr(0, end);
  }
  Bytes rest() const { return rest_; }

 private:
  Bytes rest_;
};

}  // namespace chexnet::fuzz
