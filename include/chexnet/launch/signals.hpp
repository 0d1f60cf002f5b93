// Signals of a rank: SIGUSR1, SIGUSR2, SIGTERM, SIGINT and, but under nohup,
// SIGHUP ask for a stop with a checkpoint; the ranks agree on it at a step. A
// second SIGINT ends the process at once.
#pragma once

namespace chexnet {

// First thing in main: the kernel kills this process when its parent dies (kill
// -9 of mpirun orphans its ranks otherwise). Returns false when the parent is
// gone already. Only for processes that a launcher started.
bool die_with_parent();

// Whether SIGHUP, which a terminal sends when it closes, is not ignored: nohup
// starts programs that ignore it.
bool terminal_may_end_us();

// Until somebody asks stop_requested() nothing can be written: then a TERM of
// mpirun ends this process within a second.
void install_stop_signals();
bool stop_requested();
// While it lives, a signal that asks for a stop ends this process with exit
// code 75 at once: for work that leaves nothing behind, such as waiting for
// input.
class StopAtOnce {
 public:
  StopAtOnce();
  ~StopAtOnce();
  StopAtOnce(const StopAtOnce&) = delete;
  StopAtOnce& operator=(const StopAtOnce&) = delete;
};
// The launcher itself sent TERM: it ends the job, and kills in about a second.
bool launcher_ends_job();

}  // namespace chexnet
