#include "chexnet/launch/launched_ranks.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "support/catch.hpp"

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
    if (has_ranks_below(getpid())) return true;
    usleep(20'000);
  }
  return false;
}

}  // namespace

TEST_CASE("a rank that a launcher of ours started is seen") {
  CHECK_FALSE(has_ranks_below(getpid()));
  {
    const Launcher other("OMPI_COMM_WORLD_RANKING=0");
    CHECK_FALSE(comes_within(10));
    const Launcher launcher("PMIX_RANK=0");
    CHECK(comes_within(500));
  }
  CHECK_FALSE(has_ranks_below(getpid()));
}
