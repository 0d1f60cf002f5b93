#include "chexnet/launch/run_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "chexnet/core/error.hpp"
#include "chexnet/launch/environment.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("a run folder has one user at a time") {
  const ScratchFolder folder;
  {
    const RunLock lock(folder.path());
    CHECK(run_is_locked(folder.path()) == true);
    CHECK(error_of<CheckpointError>([&] {
            RunLock second(folder.path());
          }).find("in use by process") != std::string::npos);
  }
  CHECK(
      error_of<CheckpointError>([&] { RunLock again(folder.path()); }).empty());
  CHECK(run_is_locked(folder.path()) == false);
  CHECK_FALSE(run_is_locked(folder / "nothing"));
}

TEST_CASE("a lock whose file is removed is taken again, or is another's") {
  const ScratchFolder folder;
  RunLock lock(folder.path());
  const auto again = [&] {
    return error_of<CheckpointError>([&] { lock.require(); });
  };
  CHECK(again().empty());
  std::filesystem::remove(folder / ".lock");
  CHECK(again().empty());
  CHECK(run_is_locked(folder.path()) == true);
  std::filesystem::remove(folder / ".lock");
  const RunLock second(folder.path());
  CHECK(again().find("in use by process") != std::string::npos);
}

TEST_CASE("a folder in which another run was begun since is refused") {
  const ScratchFolder scratch;
  const auto folder = scratch / "run";
  std::filesystem::create_directory(folder);
  RunLock lock(folder);
  const auto refused = [&] {
    return error_of<CheckpointError>([&] { lock.require(); });
  };
  CHECK(other_owner(folder).empty());
  std::filesystem::remove(folder / ".lock");
  CHECK(other_owner(folder).empty());
  scratch.write("run/.lock", "process 1 on elsewhere");  // it has ended
  CHECK(
      refused().find("another run was begun here by process 1 on elsewhere") !=
      std::string::npos);
  CHECK(other_owner(folder) == "process 1 on elsewhere");

  std::filesystem::rename(folder, scratch / "moved");
  CHECK(refused().empty());  // what is written next finds no folder
  std::filesystem::create_directory(folder);
  CHECK(refused().find("is another folder than the one") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / ".lock"));
}

TEST_CASE("ranks that start again wait for a lock of ranks that still end") {
  const ScratchFolder folder;
  auto dying = std::make_unique<RunLock>(folder.path());
  std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    dying.reset();
  });
  CHECK(error_of<CheckpointError>([&] {
          RunLock next(folder.path(), 30);
        }).empty());
}

// flock() needs no more than a descriptor to read.
TEST_CASE("who may not write the file of a lock may not read it either") {
  const ScratchFolder folder;
  const auto mode_under = [&](mode_t mask) {
    const mode_t before = ::umask(mask);
    const RunLock lock(folder.path());
    ::umask(before);
    struct stat info {};
    REQUIRE(::stat((folder / ".lock").c_str(), &info) == 0);
    return info.st_mode & 0777;
  };
  CHECK(mode_under(022) == 0600);
  CHECK(mode_under(077) == 0600);  // of an older run
  std::filesystem::remove(folder / ".lock");
  CHECK(mode_under(007) == 0660);  // a group that trains in one folder
}

TEST_CASE("a lock whose file names a process that has ended is told as such") {
  const ScratchFolder folder;
  // Above every pid that Linux gives.
  folder.write(".lock", "process 2000000000 on " + host_name());
  const int other = ::open((folder / ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  const auto error =
      error_of<CheckpointError>([&] { const RunLock lock(folder.path()); });
  ::close(other);
  CHECK(error.find("in use by a process that left no name") !=
        std::string::npos);
  CHECK(error.find("process 2000000000 on " + host_name() +
                   ", does not run here") != std::string::npos);
}
