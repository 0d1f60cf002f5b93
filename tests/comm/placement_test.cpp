#include "chexnet/comm/placement.hpp"

#include <unistd.h>

#include <fstream>

#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/made_up_gpus.hpp"

using namespace chexnet;

namespace {

// The warnings of one rank on the first of two GPUs, on which these processes
// are too.
std::string warnings(const std::string& processes) {
  const ScratchFolder folder;
  const auto file = folder.path() / "gpus.yaml";
  std::ofstream(file) << "driver: 580.65.06\ngpus:\n"
                      << "  - {name: V100, uuid: GPU-0, processes: ["
                      << processes << "]}\n"
                      << "  - {name: V100, uuid: GPU-1, processes: "
                      << "[{pid: 4713, bytes: 1}]}\n";
  const MadeUpGpus gpus(file.string());
  const auto solo = solo_communicator();
  std::string text;
  for (const auto& line :
       place_ranks(*solo, BindPolicy::kOff, {"GPU-0", "V100"}, false).warnings)
    text += line + "\n";
  return text;
}

std::string process(unsigned pid) {
  return "{pid: " + std::to_string(pid) + ", bytes: 1073741824}";
}

}  // namespace

TEST_CASE("a rank is told who else uses its GPU") {
  const std::string own = process(static_cast<unsigned>(getpid()));
  CHECK(warnings(own).empty());
  const std::string both = warnings(own + ", " + process(4711));
  CHECK(both.find("[gpu] process 4711 also uses GPU GPU-0") == 0);
  CHECK(both.find("(1.0 GiB)") != std::string::npos);
  const std::string unknown = warnings(own + ", {pid: 4711}");
  CHECK(unknown.find("GiB") == std::string::npos);
  CHECK(unknown.find("4711") != std::string::npos);
}

TEST_CASE("a rank that NVML counts otherwise is no stranger to itself") {
  CHECK(warnings(process(4711)).empty());
}
