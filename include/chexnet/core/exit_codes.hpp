// The one table of exit codes. --help, docs/errors.md, job scripts and the rule
// for restarts read it.
//
// Errors are thrown and main returns their code. Library code ends a process
// only where nobody could catch: a main thread that may hang
// (comm/watch/hard_exit.cpp), a page of a mapped file that cannot be read any
// more (data/mapped_file.cpp), the child between fork and exec
// (launch/self_launch.cpp), and ranks whose world cannot be left in order
// (MPI_Abort).
#pragma once

#include <span>
#include <string>

#include "chexnet/core/error.hpp"

namespace chexnet {

// Who starts the same command again by itself.
enum class AfterExit {
  kNobody,
  kJobScript,  // another job goes on from the checkpoint
  // The parent of the ranks (launch.restarts) or a job script: it may pass.
  kAnyone,
};

struct ExitMeaning {
  ExitCode code;
  const char* kind;
  const char* what_to_do;  // empty: nothing
  AfterExit after;
};

// In the order of their numbers.
std::span<const ExitMeaning> exit_meanings();

// Null for a code that is not ours: a signal, a launcher's own failure.
const ExitMeaning* find_exit_meaning(int exit_code);

// The table in docs/errors.md.
std::string exit_codes_markdown();

}  // namespace chexnet
