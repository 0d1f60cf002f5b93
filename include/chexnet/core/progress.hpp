// Shows that long work makes progress: one line that is rewritten on a
// terminal, a line every few seconds elsewhere. stderr, rank 0 only. One
// thread.
#pragma once

#include <string>

namespace chexnet {

class Progress {
 public:
  explicit Progress(bool enabled);
  // Shows `text` when it is time.
  void show(const std::string& text);
  // Ends the rewritten line, so that something else can be printed.
  void clear();

 private:
  bool enabled_, terminal_;
  double last_ = 0;
  size_t width_ = 0;
};

// "34 %, 2m07s left" for a fraction done of 0..1 after `seconds`.
std::string percent_and_time_left(double fraction, double seconds);

}  // namespace chexnet
