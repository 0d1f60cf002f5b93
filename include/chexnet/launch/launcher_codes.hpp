// Exit codes on their way through a launcher. MPICH's mpirun reports a rank
// that a signal ended by the signal's bare number: 9 for KILL, which is also
// one of our codes. So ranks of such an mpirun that our parent started add an
// offset to theirs, and the parent takes it off again.
#pragma once

#include <optional>

#include "chexnet/config/choices.hpp"

namespace chexnet {

// The code to exit with, so that the parent reads `exit_code`. Takes no lock
// and no memory.
int code_for_launcher(int exit_code);

// The meaning of the launcher's code, as a shell has it: 128 + the number of a
// signal.
int code_from_launcher(int code, MpiFamily launcher);

// The number of the signal that such a code tells.
std::optional<int> signal_of(int code);

}  // namespace chexnet
