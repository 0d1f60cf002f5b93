// Errors that all ranks find alike (a wrong config, a missing table), said
// once.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace chexnet {

// A filter of what ranks write to stderr, by whole lines.
class RepeatedErrors {
 public:
  // The part of `bytes` to pass on: no line of an error that another rank has
  // printed. A line that has not ended yet is kept, up to 64 KiB of it.
  std::string pass(std::string_view bytes);
  // What was kept, at the end.
  std::string rest();

 private:
  bool is_repeated(std::string_view line);
  std::string line_;  // not ended yet
  std::unordered_set<std::string> said_;
  enum class Within { kNothing, kError, kRepeated } within_ = Within::kNothing;
  int following_ = 0;  // lines after the first of an error
};

}  // namespace chexnet
