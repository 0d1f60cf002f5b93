// Whether a run that ended badly is worth another start.
#pragma once

#include <string>

namespace chexnet {

class RestartPolicy {
 public:
  // Two restarts at the same checkpoint are enough to know that a third would
  // end there too.
  static constexpr int kSamePlace = 2;
  explicit RestartPolicy(int restarts) : left_(restarts) {}

  // The codes that core/exit_codes.hpp says may pass, and those that are not
  // ours: deaths by signal, which launchers report as other numbers.
  static bool may_pass(int exit_code);
  // With these codes a rank has said itself why it ended.
  static bool is_explained(int exit_code);
  // How long to wait before the next start, seconds: ranks that meet the same
  // outage again use up their restarts for nothing.
  static double pause_s(int exit_code);
  // Whether to start again after `exit_code`, the newest checkpoint being
  // `checkpoint` (its name, empty: none). Counts the restart.
  bool again(int exit_code, const std::string& checkpoint);
  int left() const { return left_; }

 private:
  int left_, at_same_ = 0;
  std::string place_ = "?";
};

}  // namespace chexnet
