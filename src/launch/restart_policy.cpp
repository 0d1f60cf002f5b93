#include "chexnet/launch/restart_policy.hpp"

#include "chexnet/core/exit_codes.hpp"

namespace chexnet {

// Not ours: a signal, or a launcher that reports one as a number of its own.
bool RestartPolicy::may_pass(int exit_code) {
  const ExitMeaning* meaning = find_exit_meaning(exit_code);
  return meaning == nullptr || meaning->after == AfterExit::kAnyone;
}

bool RestartPolicy::is_explained(int exit_code) {
  const ExitMeaning* meaning = find_exit_meaning(exit_code);
  return meaning != nullptr && meaning->after == AfterExit::kAnyone;
}

double RestartPolicy::pause_s(int exit_code) {
  constexpr double kOutage_s = 60;
  return exit_code == static_cast<int>(ExitCode::kOutage) ? kOutage_s : 0;
}

// A new checkpoint in between is progress and clears the count; without one,
// the next start would most likely end where the last did.
bool RestartPolicy::again(int exit_code, const std::string& checkpoint) {
  if (!may_pass(exit_code) || left_ <= 0) return false;
  at_same_ = checkpoint == place_ ? at_same_ + 1 : 0;
  place_ = checkpoint;
  if (at_same_ >= kSamePlace) return false;
  --left_;
  return true;
}

}  // namespace chexnet
