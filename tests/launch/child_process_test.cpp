#include "chexnet/launch/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("a command that hangs is ended") {
  const auto result = output_of({"sh", "-c", "echo begun; exec sleep 60"}, 2);
  CHECK(result.exit_code == 128 + 9);
  CHECK(result.output == "begun\n");
}

TEST_CASE("a command whose end the kernel hides is an error, not a success") {
  signal(SIGCHLD, SIG_IGN);
  CHECK(error_of<DeviceError>([] { output_of({"false"}); }).find("SIGCHLD") !=
        std::string::npos);
  signal(SIGCHLD, SIG_DFL);
}

TEST_CASE("a command gets no file that a library holds open") {
  const int left_open = open("/etc/passwd", O_RDONLY);
  REQUIRE(left_open > 2);
  const auto direct = output_of({"ls", "-l", "/proc/self/fd"}, 20);
  CHECK(direct.output.find("passwd") == std::string::npos);
  const auto shell =
      run_in_shell("ls -l /proc/self/fd >&2", "", std::stop_token());
  CHECK(shell.exit_code == 0);
  CHECK(shell.output.find("passwd") == std::string::npos);
  CHECK(fcntl(left_open, F_GETFD) >= 0);
  close(left_open);
}
