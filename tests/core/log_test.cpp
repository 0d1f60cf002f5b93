#include "chexnet/core/log.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>

#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// The stderr of `action`; less than a pipe holds.
template <class Action>
std::string said_by(Action action) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  action();
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(ends[1]);
  std::string text(4096, '\0');
  const auto count = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
  return text;
}

}  // namespace

TEST_CASE("a log file that cannot be written is told once, in our words") {
  const ScratchFolder folder;
  const std::string log = (folder / "log.txt").string();
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{.rlim_cur = 10, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // as the program does
  set_log_file(log);
  const std::string said = said_by([&] {
    ::setrlimit(RLIMIT_FSIZE, &small);
    log_info("one");
    log_info("two");
    ::setrlimit(RLIMIT_FSIZE, &before);
  });
  close_log();
  std::signal(SIGXFSZ, handler);
  CHECK(said == "one\nwarning: [log] " + log +
                    ": lines are missing from here on: File too large. Hint: "
                    "free space there\ntwo\n");
}
