#include "chexnet/launch/launcher_codes.hpp"

#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/mpi_family.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace {

// Codes of ours below the numbers of signals; kRequeue (75) is not among them.
constexpr int kSignals = 32, kOffset = 160, kShellSignal = 128;

// Known before main, because signal handlers read it.
const bool kAddsOffset = [] {
  const Environment env = process_environment();
  return started_by_parent(env) && launcher_mpi(env) == MpiFamily::kMpich;
}();

}  // namespace

int code_for_launcher(int exit_code) {
  const bool ambiguous = exit_code > 0 && exit_code < kSignals;
  return kAddsOffset && ambiguous ? exit_code + kOffset : exit_code;
}

int code_from_launcher(int code, MpiFamily launcher) {
  if (launcher == MpiFamily::kOpenMpi) return code;
  if (code > kOffset && code < kOffset + kSignals) return code - kOffset;
  return code > 0 && code < kSignals ? code + kShellSignal : code;
}

std::optional<int> signal_of(int code) {
  if (code <= kShellSignal || code >= kShellSignal + kSignals)
    return std::nullopt;
  return code - kShellSignal;
}

}  // namespace chexnet
