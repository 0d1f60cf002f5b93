#include "chexnet/launch/machine/host_checks.hpp"

#include <algorithm>
#include <filesystem>

#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

const CheckResult* named(const std::vector<CheckResult>& checks,
                         const std::string& name) {
  const auto found = std::ranges::find(checks, name, &CheckResult::name);
  return found == checks.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE(
    "a host's checks: each is there once, and the folder is left as it was") {
  const ScratchFolder folder;
  const auto checks = check_host({.folder = folder.path().string()});
  for (const char* name :
       {"driver", "CUDA", "visible GPUs", "machine", "locked memory",
        "open files", "/dev/shm", "room for runs", "file system"}) {
    CAPTURE(name);
    CHECK(std::ranges::count(checks, name, &CheckResult::name) == 1);
  }
  CHECK(named(checks, "machine")->text.find("core") != std::string::npos);
  CHECK(named(checks, "file system")->level != Level::kFail);
  CHECK(named(checks, "room for runs")
            ->text.starts_with(folder.path().string() + ": "));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE(
    "a folder that is not there is a check that fails, and says what to do") {
  const auto checks = check_host({.folder = "/nowhere/at/all"});
  const CheckResult* disk = named(checks, "file system");
  REQUIRE(disk != nullptr);
  CHECK(disk->level == Level::kFail);
  CHECK(disk->text.find(
            "[doctor] /nowhere/at/all: No such file or directory") == 0);
  CHECK_FALSE(disk->advice.empty());
  CHECK(named(checks, "room for runs") == nullptr);
}
