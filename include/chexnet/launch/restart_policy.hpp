// Whether a run that ended badly is worth another start.
#pragma once

#include <string>

namespace chexnet {

class RestartPolicy {
 public:
  // Two restarts at the same checkpoint are enough to know that a third would end there too.
  static constexpr int kSamePlace = 2;
  explicit RestartPolicy(int restarts) : left_(restarts) {}

  // Exit codes that may pass: 5 (device, communication), 7 (hang), and deaths by signal, which
  // launchers report as other numbers; not usage, data, checkpoint, numeric or a stop on request.
  static bool may_pass(int exit_code);
  // Whether to start again after `exit_code`, the newest checkpoint being `checkpoint` (its name,
  // empty: none). Counts the restart.
  bool again(int exit_code, const std::string& checkpoint);
  int left() const { return left_; }

 private:
  int left_, at_same_ = 0;
  std::string place_ = "?";
};

}  // namespace chexnet
