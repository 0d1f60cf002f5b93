// Signals of a rank, sent by a process that the kernel knows as mpirun.
#include "chexnet/launch/signals.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chexnet/launch/launchers.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

// A rank that says when it has begun to listen, and ends with 0 once it was
// asked to stop; `looks`: it asks for that at once, else after two seconds.
[[noreturn]] void be_rank(bool looks) {
  install_stop_signals();
  if (looks) static_cast<void>(stop_requested());
  kill(getppid(), SIGUSR2);
  if (!looks)
    for (unsigned left_s = 2; left_s > 0;) left_s = sleep(left_s);
  while (!stop_requested()) usleep(10'000);
  _exit(0);
}

// What wait() says of a rank to which `launcher` sends TERM.
int rank_ended_by(const char* launcher, bool looks) {
  const pid_t parent = fork();
  if (parent == 0) {
    prctl(PR_SET_NAME, launcher);
    sigset_t listens;
    sigemptyset(&listens);
    sigaddset(&listens, SIGUSR2);
    sigprocmask(SIG_BLOCK, &listens, nullptr);
    const pid_t rank = fork();
    if (rank == 0) {
      sigprocmask(SIG_UNBLOCK, &listens, nullptr);
      be_rank(looks);
    }
    sigwaitinfo(&listens, nullptr);
    kill(rank, SIGTERM);
    int status = 0;
    waitpid(rank, &status, 0);
    _exit(WIFSIGNALED(status) ? WTERMSIG(status) : 100 + WEXITSTATUS(status));
  }
  int status = 0;
  waitpid(parent, &status, 0);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a rank that starts is ended by a TERM of mpirun") {
  REQUIRE(find_launcher("mpirun") != nullptr);
#if defined(__SANITIZE_THREAD__)
  WARN("skipped: the thread sanitizer hands a signal on when a call returns");
#else
  CHECK(rank_ended_by("mpirun", false) == SIGALRM);
#endif
  // Slurm gives it longer.
  CHECK(rank_ended_by("slurmstepd", false) == 100);
}

TEST_CASE("a rank that looks at requests to stop answers them itself") {
  CHECK(rank_ended_by("mpirun", true) == 100);
  CHECK(rank_ended_by("slurmstepd", true) == 100);
}
