#include "chexnet/launch/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
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

TEST_CASE("a command of a rank does not look like one") {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  setenv("PMIX_RANK", "1", 1);
  setenv("PMIX_MCA_gds", "hash", 1);
  const auto direct = output_of({"env"}, 20).output;
  const auto shell = run_in_shell("env >&2", "", std::stop_token()).output;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_MCA_gds"})
    unsetenv(name);
  for (const std::string& text : {direct, shell}) {
    CHECK(text.find("OMPI_COMM_WORLD_SIZE") == std::string::npos);
    CHECK(text.find("PMIX_RANK") == std::string::npos);
    CHECK(text.find("PMIX_MCA_gds=hash") != std::string::npos);
    CHECK(text.find("PATH=") != std::string::npos);
  }
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
