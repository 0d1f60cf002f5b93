#include "chexnet/launch/launcher_codes.hpp"

#include <signal.h>

#include "chexnet/core/exit_codes.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a signal is told from an exit code behind MPICH's mpirun") {
  const auto of = [](int code) {
    return code_from_launcher(code, MpiFamily::kMpich);
  };
  CHECK(of(0) == 0);
  CHECK(of(75) == 75);
  CHECK(of(SIGKILL) == 128 + SIGKILL);
  CHECK(of(160 + 9) == 9);
  CHECK(of(255) == 255);
  for (int code = 0; code < 256; ++code)
    CHECK(code_from_launcher(code, MpiFamily::kOpenMpi) == code);
  // No launcher started this process.
  CHECK(code_for_launcher(9) == 9);
}
