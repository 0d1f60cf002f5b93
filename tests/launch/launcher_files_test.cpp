#include "chexnet/launch/launcher_files.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "chexnet/launch/launchers.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder))
    found.push_back(entry.path().filename().string());
  std::ranges::sort(found);
  return found;
}

}  // namespace

TEST_CASE("what a killed mpirun left is removed, and nothing of another") {
  const ScratchFolder scratch;
  const fs::path tmp = scratch / "tmp", shm = scratch / "shm";
  write(tmp / "ompi.node.a.0/pid.4711/contact.txt",
        "602865664.0;tcp://192.0.2.2:1\n4711\n");  // 0x23ef0000
  write(tmp / "ompi.node.a.0/pid.4711/1/0/x", "");
  write(tmp / "ompi.node.a.0/pid.4712/contact.txt", "602931200.0;\n");
  write(tmp / "mine/pid.4711/contact.txt", "602865664.0;\n");
  for (const char* name :
       {"vader_segment.node.a.0.23ef0001.0",
        "vader_segment.node.a.0.23ef0002.1",
        "vader_segment.node.a.0.23f00001.0", "vader_segment.23ef0001",
        "vader_segment.node.a.0.23ef0001x.0", "vader_segment..",
        "sem.23ef0001.0"})
    write(shm / name, "");

  remove_launcher_files(4711, tmp, shm);

  CHECK(names(tmp / "ompi.node.a.0") == std::vector<std::string>{"pid.4712"});
  CHECK(fs::exists(tmp / "mine/pid.4711/contact.txt"));
  CHECK(names(shm) ==
        std::vector<std::string>{"sem.23ef0001.0", "vader_segment..",
                                 "vader_segment.23ef0001",
                                 "vader_segment.node.a.0.23ef0001x.0",
                                 "vader_segment.node.a.0.23f00001.0"});
  remove_launcher_files(4712, tmp, shm);
  CHECK(names(tmp) == std::vector<std::string>{"mine"});
  CHECK(names(shm).size() == 4);
}

TEST_CASE("an mpirun that was killed at its end leaves an empty folder") {
  const ScratchFolder scratch;
  const fs::path tmp = scratch / "tmp", shm = scratch / "shm";
  fs::create_directories(tmp / "ompi.node.a.0");
  fs::create_directories(tmp / "mine");
  fs::create_directories(shm);

  remove_launcher_files(4711, tmp, shm);

  CHECK(names(tmp) == std::vector<std::string>{"mine"});
}

TEST_CASE("what a killed daemon of mpirun left is removed, of it alone") {
  const ScratchFolder scratch;
  const fs::path tmp = scratch / "tmp", shm = scratch / "shm";
  const fs::path top = tmp / "ompi.node2.0";
  write(top / "jf.9199/pmix_dstor_ds21_815/lock", "");  // 0x23ef
  write(top / "jf.9199/1/2/x", "");
  write(top / "jf.9200/pmix_dstor_ds21_1815/lock", "");
  write(top / "jf.9201x/pmix_dstor_ds21_815/lock", "");
  write(shm / "vader_segment.node2.0.23ef0001.0", "");
  write(shm / "vader_segment.node2.0.23f00001.0", "");

  remove_launcher_files(815, tmp, shm);

  CHECK(names(top) == std::vector<std::string>{"jf.9200", "jf.9201x"});
  CHECK(names(shm) ==
        std::vector<std::string>{"vader_segment.node2.0.23f00001.0"});
}

TEST_CASE("a folder of mpirun that is a link is left alone") {
  const ScratchFolder scratch;
  write(scratch / "others/contact.txt", "602865664.0;\n");
  fs::create_directories(scratch / "tmp/ompi.node.0");
  fs::create_directory_symlink(scratch / "others",
                               scratch / "tmp/ompi.node.0/pid.4711");
  remove_launcher_files(4711, scratch / "tmp", scratch / "shm");
  CHECK(fs::exists(scratch / "others/contact.txt"));
}

TEST_CASE("a child closes all files but one") {
  const ScratchFolder scratch;
  const int first = open(scratch.write("a", "").c_str(), O_RDONLY);
  const int kept = open(scratch.write("b", "").c_str(), O_RDONLY);
  const int last = open(scratch.write("c", "").c_str(), O_RDONLY);
  REQUIRE((first >= 0 && kept > first && last > kept));
  const pid_t child = fork();
  if (child == 0) {
    close_files_but(kept);
    const auto is_open = [](int file) { return fcntl(file, F_GETFD) >= 0; };
    _exit(is_open(kept) && !is_open(first) && !is_open(last) && !is_open(2)
              ? 0
              : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (const int file : {first, kept, last}) close(file);
}
