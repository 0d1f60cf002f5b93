#include "chexnet/core/result_folder.hpp"

#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/safe_open.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

bool is_picture(std::string_view name) { return name.ends_with(".png"); }

// A process that does `work`, says so and waits; killed by kill -9 at the end.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void()>& work) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      try {
        work();
        if (::write(ends[1], "x", 1) == 1) ::pause();
      } catch (...) {  // the parent reads nothing, and fails
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    char said = 0;
    REQUIRE(::read(ends[0], &said, 1) == 1);
    ::close(ends[0]);
  }
  ~OtherProcess() { kill_9(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  void kill_9() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  pid_t child_ = 0;
};

void begin_in(const fs::path& folder, const ScratchFolder& scratch) {
  static std::optional<ResultFolder> open;  // never ends
  open.emplace("maps", folder, is_picture);
  for (const char* name : {"1.png", "2.png"})
    scratch.write((folder.filename() / name).string(), "x");
}

std::string error_in(const fs::path& folder) {
  return error_of<CheckpointError>(
      [&] { const ResultFolder own("maps", folder, is_picture); });
}

}  // namespace

TEST_CASE("a result folder is made, marked until it is finished, and kept") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "a/b";
  ResultFolder::check("maps", folder, is_picture);
  CHECK_FALSE(fs::exists(scratch / "a"));
  {
    ResultFolder own("maps", folder, is_picture);
    CHECK(read_text(folder / "unfinished").find("Process ") == 0);
    scratch.write("a/b/1.png", "x");
    own.finish();
    CHECK_FALSE(fs::exists(folder / "unfinished"));
  }
  CHECK(fs::exists(folder / "1.png"));
  // Nobody removes a finished result.
  CHECK(error_in(folder).find("is not an empty folder: 1.png lies in it") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(folder / "unfinished"));
  CHECK_FALSE(error_of<CheckpointError>([&] {
                ResultFolder::check("maps", folder, is_picture);
              }).empty());
  CHECK(fs::exists(folder / "1.png"));
}

TEST_CASE("where nothing was written, no folder and no mark stays") {
  const ScratchFolder scratch;
  { const ResultFolder own("maps", scratch / "new", is_picture); }
  CHECK_FALSE(fs::exists(scratch / "new"));
  fs::create_directory(scratch / "there");
  { const ResultFolder own("maps", scratch / "there", is_picture); }
  CHECK(fs::is_empty(scratch / "there"));
}

TEST_CASE(
    "what a killed process left is removed, what a living one writes not") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "maps";
  OtherProcess other([&] { begin_in(folder, scratch); });
  CHECK(error_in(folder).find("another command writes to it") !=
        std::string::npos);
  CHECK(fs::exists(folder / "1.png"));
  other.kill_9();
  ResultFolder::check("maps", folder, is_picture);
  CHECK(fs::exists(folder / "1.png"));  // a check changes nothing
  {
    ResultFolder own("maps", folder, is_picture);
    CHECK_FALSE(fs::exists(folder / "1.png"));
    CHECK_FALSE(fs::exists(folder / "2.png"));
    scratch.write("maps/3.png", "x");
    own.finish();
  }
  CHECK(fs::exists(folder / "3.png"));
}

TEST_CASE("a folder in which somebody else put something is left alone") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "maps";
  {
    OtherProcess other([&] { begin_in(folder, scratch); });
  }
  scratch.write("maps/notes.txt", "mine");
  CHECK(error_in(folder).find("notes.txt lies in it") != std::string::npos);
  CHECK(fs::exists(folder / "1.png"));
  CHECK(fs::exists(folder / "unfinished"));
  fs::remove(folder / "notes.txt");
  fs::create_directory(folder / "sub.png");
  CHECK(error_in(folder).find("sub.png lies in it") != std::string::npos);
  fs::remove(folder / "sub.png");
  CHECK(error_in(folder).empty());
}

TEST_CASE("a temporary folder of a killed process goes, one in use stays") {
  const ScratchFolder scratch;
  const auto before = fs::temp_directory_path().string();
  ::setenv("TMPDIR", scratch.path().c_str(), 1);
  const auto count = [&] {
    return std::distance(fs::directory_iterator(scratch.path()), {});
  };
  fs::path left;
  {
    OtherProcess other([] {
      static const TemporaryFolder own("x", "chexnet-x");
      write_atomically(own.path() / "picture.png", "x");
    });
    CHECK(count() == 1);
    const TemporaryFolder beside("x", "chexnet-x");
    CHECK(count() == 2);
    left = scratch / "chexnet-xy-ABCDEF";  // of another name
    make_private_folder(left);
  }
  CHECK(count() == 2);
  {
    const TemporaryFolder next("x", "chexnet-x");
    CHECK(count() == 2);
    CHECK(fs::exists(left));
  }
  CHECK(count() == 1);
  fs::path kept;
  {
    TemporaryFolder result("x", "chexnet-x");
    write_atomically(result.path() / "result", "x");
    kept = result.keep();
    CHECK(kept == result.path());
  }
  { const TemporaryFolder next("x", "chexnet-x"); }
  CHECK(fs::exists(kept / "result"));
  CHECK(count() == 2);
  ::setenv("TMPDIR", before.c_str(), 1);
}
