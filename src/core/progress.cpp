// On a terminal one line is replaced again and again; `width_` is how much of
// it must be blanked next time. In a log file lines stay, so they come rarely.
#include "chexnet/core/progress.hpp"

#include <unistd.h>

#include <cstdio>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {
constexpr double kTerminalInterval_s = 0.2, kLineInterval_s = 5;
}

std::string percent_and_time_left(double fraction, double seconds) {
  return fixed(100 * fraction, 0) + " %" +
         (fraction > 0
              ? ", " + readable_s(seconds * (1 - fraction) / fraction) + " left"
              : "");
}

Progress::Progress(bool enabled)
    : enabled_(enabled),
      terminal_(isatty(STDERR_FILENO) == 1),
      last_(now_s()) {}

void Progress::show(const std::string& text) {
  if (!enabled_) return;
  const double now = now_s();
  if (now - last_ < (terminal_ ? kTerminalInterval_s : kLineInterval_s)) return;
  last_ = now;
  if (!terminal_) {
    log_info(text);
    return;
  }
  const std::string padding(width_ > text.size() ? width_ - text.size() : 0,
                            ' ');
  std::fprintf(stderr, "\r%s%s", text.c_str(), padding.c_str());
  std::fflush(stderr);
  width_ = text.size();
}

void Progress::clear() {
  if (!enabled_ || !terminal_ || width_ == 0) return;
  std::fprintf(stderr, "\r%s\r", std::string(width_, ' ').c_str());
  width_ = 0;
}

}  // namespace chexnet
