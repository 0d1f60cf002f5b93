#include "chexnet/launch/launched_ranks.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "support/catch.hpp"
#include "support/fake_environment.hpp"

using namespace chexnet;

namespace {

// A shell that starts `sleep` with `variable`, until it is asked to end.
class Launcher {
 public:
  explicit Launcher(const char* variable) {
    const std::string line =
        std::string("env ") + variable + " sleep 60 & echo; wait";
    std::array<int, 2> said{};
    REQUIRE(pipe(said.data()) == 0);
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      dup2(said[1], STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(1);
    }
    char byte = 0;
    REQUIRE(read(said[0], &byte, 1) == 1);
    for (const int end : said) close(end);
  }
  ~Launcher() {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

 private:
  pid_t process_ = -1;
};

bool comes_within(int tries) {
  for (int i = 0; i < tries; ++i) {
    if (!ranks_below(getpid()).empty()) return true;
    usleep(20'000);
  }
  return false;
}

}  // namespace

TEST_CASE("a rank that a launcher of ours started is seen") {
  CHECK(ranks_below(getpid()).empty());
  {
    const Launcher other("OMPI_COMM_WORLD_RANKING=0");
    CHECK_FALSE(comes_within(10));
    const Launcher launcher("PMIX_RANK=0 SLURM_STEP_NUM_NODES=2");
    CHECK(comes_within(500));
    CHECK_FALSE(has_all_ranks_below(getpid()));
    const Launcher here("PMIX_RANK=0 SLURM_STEP_NUM_NODES=1");
    CHECK(comes_within(500));
    for (int i = 0; i < 500 && !has_all_ranks_below(getpid()); ++i)
      usleep(20'000);
    CHECK(has_all_ranks_below(getpid()));
  }
  CHECK(ranks_below(getpid()).empty());
}

TEST_CASE("a rank that is stopped is told from one that runs") {
  const Launcher launcher("PMIX_RANK=0");
  REQUIRE(comes_within(500));
  const pid_t rank = ranks_below(getpid()).front();
  CHECK_FALSE(is_stopped(rank));
  kill(rank, SIGSTOP);
  for (int i = 0; i < 500 && !is_stopped(rank); ++i) usleep(20'000);
  CHECK(is_stopped(rank));
  kill(rank, SIGCONT);
  for (int i = 0; i < 500 && is_stopped(rank); ++i) usleep(20'000);
  CHECK_FALSE(is_stopped(rank));
}

TEST_CASE("a rank that has ended runs no more, waited for or not") {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  for (int i = 0; i < 500 && is_running(child); ++i) usleep(20'000);
  CHECK_FALSE(is_running(child));
  waitpid(child, nullptr, 0);
  CHECK_FALSE(is_running(child));
  CHECK(is_running(getpid()));
}

TEST_CASE("a process that the kernel makes wait is told from one that sleeps") {
  const auto ready = [](pid_t child, bool wanted) {
    for (int i = 0; i < 500 && waits_in_kernel(child) != wanted; ++i)
      usleep(20'000);
    return waits_in_kernel(child) == wanted;
  };
  const pid_t child = fork();
  if (child == 0) {
    // As vfork(), which sanitizers replace: it waits for its child, and no
    // signal but KILL ends that.
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pause();
    }
    _exit(0);
  }
  CHECK(ready(child, true));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK_FALSE(waits_in_kernel(child));
  CHECK_FALSE(waits_in_kernel(getpid()));
}

TEST_CASE("launchers say how many processes they started") {
  using Variables = std::map<std::string, std::string>;
  for (const auto& [variables, count] : std::vector<std::pair<Variables, int>>{
           {{}, 1},
           {{{"OMPI_COMM_WORLD_SIZE", "3"}}, 3},
           {{{"PMI_SIZE", "2"}}, 2},
           {{{"SLURM_STEP_NUM_TASKS", "4"}}, 4},
           {{{"SLURM_NTASKS", "8"}}, 1},  // a batch script
           // Daemons of mpirun, one for each host.
           {{{"SLURM_STEP_NUM_TASKS", "4"},
             {"OMPI_COMM_WORLD_RANK", "0"},
             {"OMPI_COMM_WORLD_SIZE", "1"}},
            1}})
    CHECK(launched_processes(fake(variables)) == count);
}

TEST_CASE("a zombie says how it ended") {
  const auto ended = [](auto&& end) {
    const pid_t child = fork();
    if (child == 0) end();
    for (int i = 0; i < 500 && !is_zombie(child); ++i) usleep(20'000);
    const auto status = wait_status_of(child);
    waitpid(child, nullptr, 0);
    CHECK_FALSE(wait_status_of(child));
    return status.value_or(-1);
  };
  const int left = ended([] { _exit(6); });
  CHECK((WIFEXITED(left) && WEXITSTATUS(left) == 6));
  const int killed = ended([] {
    raise(SIGKILL);
    _exit(0);
  });
  CHECK((WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL));
  CHECK_FALSE(wait_status_of(getpid()));
}

TEST_CASE("a rank of Open MPI has its number in its environment") {
  const Launcher launcher("PMIX_RANK=3 OMPI_COMM_WORLD_RANK=3");
  REQUIRE(comes_within(500));
  CHECK(rank_number_of(ranks_below(getpid()).front()) == "3");
  CHECK(rank_number_of(getpid()).empty());
}
