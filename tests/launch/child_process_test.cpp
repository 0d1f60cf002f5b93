#include "chexnet/launch/child_process.hpp"

#include <signal.h>

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
