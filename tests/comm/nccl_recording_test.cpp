#include "chexnet/comm/nccl_recording.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// As NCCL opens it, and leaves it open.
FILE* open_as_nccl() {
  const char* name = std::getenv("NCCL_DEBUG_FILE");
  FILE* const log = name != nullptr ? std::fopen(name, "w") : nullptr;
  if (log != nullptr) std::setvbuf(log, nullptr, _IOLBF, BUFSIZ);
  return log;
}

bool is_asked() {
  for (const char* name :
       {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

bool goes_nowhere(FILE* log) {
  struct stat now {};
  struct stat nowhere {};
  return ::fstat(fileno(log), &now) == 0 &&
         ::stat("/dev/null", &nowhere) == 0 && now.st_rdev == nowhere.st_rdev &&
         S_ISCHR(now.st_mode);
}

}  // namespace

TEST_CASE("NCCL's start is recorded, and nothing after it") {
  const auto comm = solo_communicator();
  NcclRecording recording;
  FILE* const log = open_as_nccl();
  REQUIRE(log != nullptr);
  CHECK(std::string(std::getenv("NCCL_DEBUG")) == "INFO");
  std::fputs("a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n",
             log);
  const NcclReport report = recording.read(*comm, true);
  CHECK(report.not_recorded.empty());
  REQUIRE(report.pairs.size() == 1);
  CHECK(report.pairs[0].via == "P2P/IPC");
  // Else NCCL's log would grow with the run, in memory that nobody sees, and
  // programs that the run starts would inherit the variables.
  CHECK(goes_nowhere(log));
  CHECK_FALSE(is_asked());
  std::fclose(log);
}

TEST_CASE("a start that fails leaves neither variables nor a log") {
  FILE* log = nullptr;
  {
    const NcclRecording recording;
    log = open_as_nccl();
  }
  REQUIRE(log != nullptr);
  CHECK(goes_nowhere(log));
  CHECK_FALSE(is_asked());
  std::fclose(log);
}

TEST_CASE("an NCCL that is silent, or speaks otherwise, is no error") {
  const auto comm = solo_communicator();
  CHECK(NcclRecording().read(*comm, true).not_recorded == "NCCL wrote no log");
  NcclRecording recording;
  FILE* const log = open_as_nccl();
  REQUIRE(log != nullptr);
  std::fputs("a:1:1 [0] NCCL INFO 0 and 1 are joined by magic\n", log);
  CHECK(recording.read(*comm, true).not_recorded ==
        "its log names no connection");
  std::fclose(log);
}

TEST_CASE("what the user asks of NCCL's log stays") {
  const auto comm = solo_communicator();
  const std::string name =
      GENERATE("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE");
  setenv(name.c_str(), "WARN", 1);
  NcclReport report;
  {
    NcclRecording recording;
    report = recording.read(*comm, true);
    CHECK(std::string(std::getenv(name.c_str())) == "WARN");
  }
  CHECK(std::string(std::getenv(name.c_str())) == "WARN");
  unsetenv(name.c_str());
  CHECK(report.not_recorded == name + " is set");
  CHECK(report.pairs.empty());

  // NCCL takes them from such a file as well, if the environment lacks them.
  const ScratchFolder folder;
  const std::string conf =
      folder.write("nccl.conf", "# ours\nNCCL_DEBUG=WARN\n");
  setenv("NCCL_CONF_FILE", conf.c_str(), 1);
  CHECK(NcclRecording().read(*comm, true).not_recorded ==
        "NCCL_DEBUG (in nccl.conf) is set");
  unsetenv("NCCL_CONF_FILE");
}

TEST_CASE("an InfiniBand port counts when it is up") {
  const ScratchFolder folder;
  const auto port = [&](const std::string& adapter, const std::string& layer,
                        const std::string& state) {
    std::filesystem::create_directories(folder / adapter / "ports/1");
    folder.write(adapter + "/ports/1/link_layer", layer + "\n");
    folder.write(adapter + "/ports/1/state", state + "\n");
    return has_active_infiniband(folder.path());
  };
  CHECK_FALSE(has_active_infiniband(folder / "none"));
  CHECK_FALSE(port("mlx5_0", "InfiniBand", "1: DOWN"));
  CHECK_FALSE(port("mlx5_1", "InfiniBand", "2: INIT"));
  CHECK_FALSE(port("mlx5_2", "Ethernet", "4: ACTIVE"));
  CHECK(port("mlx5_3", "InfiniBand", "4: ACTIVE"));
}
