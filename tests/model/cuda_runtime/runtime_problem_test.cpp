// The real CUDA runtime over a fake driver, which the loader takes for the real
// one: it is open already under its name. The runtime asks once a process, so
// each answer needs a new process (CMakeLists.txt sets FAKE_DRIVER).
#include "model/cuda/runtime_problem.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("what the CUDA runtime has against a driver is told") {
  REQUIRE(dlopen(CHEXNET_FAKE_DRIVER, RTLD_NOW) != nullptr);
  const char* wanted = std::getenv("WANTED_TEXT");
  REQUIRE(wanted != nullptr);
  const GpuProblem problem = runtime_problem();
  INFO(problem.text());
  CHECK(problem.text().find(wanted) != std::string::npos);
  CHECK(problem.remedy.find("launch.device=cpu") != std::string::npos);
}
