#include "chexnet/launch/restart_policy.hpp"

#include "chexnet/core/error.hpp"

namespace chexnet {

bool RestartPolicy::may_pass(int exit_code) {
  switch (static_cast<ExitCode>(exit_code)) {
    case ExitCode::kDone:
    case ExitCode::kUsage:
    case ExitCode::kData:
    case ExitCode::kCheckpoint:
    case ExitCode::kNumeric:
    case ExitCode::kAbsent:
    case ExitCode::kRequeue:
      return false;
    case ExitCode::kOutage:
    case ExitCode::kDevice:
    case ExitCode::kHang:
      return true;
  }
  return true;
}

bool RestartPolicy::is_explained(int exit_code) {
  const auto code = static_cast<ExitCode>(exit_code);
  return code == ExitCode::kDevice || code == ExitCode::kHang || code == ExitCode::kOutage;
}

double RestartPolicy::pause_s(int exit_code) {
  constexpr double kOutage_s = 60;
  return exit_code == static_cast<int>(ExitCode::kOutage) ? kOutage_s : 0;
}

bool RestartPolicy::again(int exit_code, const std::string& checkpoint) {
  if (!may_pass(exit_code) || left_ <= 0) return false;
  at_same_ = checkpoint == place_ ? at_same_ + 1 : 0;
  place_ = checkpoint;
  if (at_same_ >= kSamePlace) return false;
  --left_;
  return true;
}

}  // namespace chexnet
