#include "chexnet/train/run/rungs.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

RungPlace enter(const ScratchFolder& sweep, const std::string& run,
                double value, int64_t epoch = 1) {
  return enter_rung(sweep.path(), epoch, {run, value, "same images"});
}

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("the best third of the runs that came goes on") {
  const ScratchFolder sweep;
  CHECK(enter(sweep, "a", 0.6).goes_on());        // the first has no rival
  CHECK_FALSE(enter(sweep, "b", 0.5).goes_on());  // 2 of 2
  CHECK_FALSE(enter(sweep, "c", 0.6).goes_on());  // as good, but later
  const RungPlace d = enter(sweep, "d", 0.59);
  CHECK(d.text() == "place 3 of 4, of which 2 go on");
  CHECK_FALSE(d.goes_on());
  CHECK(enter(sweep, "e", 0.61).text() == "place 1 of 5, of which 2 go on");
  CHECK(enter(sweep, "f", 0.605).goes_on());  // 2 of 6
  CHECK(enter(sweep, "g", 0.1, 3).text() ==
        "place 1 of 1, of which 1 goes on");  // at another rung
}

TEST_CASE("a run that comes again gets the answer that it had") {
  const ScratchFolder sweep;
  enter(sweep, "a", 0.6);
  const RungPlace before = enter(sweep, "b", 0.7);
  enter(sweep, "c", 0.8);
  const RungPlace after = enter(sweep, "b", 0.7);
  CHECK(after.place == before.place);
  CHECK(after.of == before.of);
  CHECK(files_in(sweep.path() / ".rungs/epoch-1") == 3);
  // Begun anew it has another score, and counts once.
  const RungPlace anew = enter(sweep, "b", 0.5);
  CHECK(anew.text() == "place 3 of 3, of which 1 goes on");
}

TEST_CASE("scores of other images are not compared") {
  const ScratchFolder sweep;
  enter(sweep, "a", 0.9);
  const auto other = enter_rung(sweep.path(), 1, {"b", 0.1, "other images"});
  CHECK(other.of == 1);
}

TEST_CASE("a folder that holds what is no score is refused by name") {
  const ScratchFolder sweep;
  enter(sweep, "a", 0.9);
  std::ofstream(sweep.path() / ".rungs/epoch-1/0001.json") << "{\"run\": 1}";
  CHECK(error_of<CheckpointError>([&] {
          enter(sweep, "b", 0.9);
        }).find("0001.json: is no score of a run") != std::string::npos);
  fs::remove_all(sweep.path() / ".rungs");
  std::ofstream(sweep.path() / ".rungs") << "in the way";
  CHECK(error_of<CheckpointError>([&] {
          enter(sweep, "b", 0.9);
        }).find("cannot be written") != std::string::npos);
}

// Sixteen processes that are killed at any time and start again: no score is
// lost or there twice, and each gets one answer.
TEST_CASE("kills lose no score of a rung, and double none") {
  const ScratchFolder sweep;
  constexpr int kRuns = 16;
  const auto name = [](int i) { return "run " + std::to_string(i); };
  const auto value = [](int i) { return 0.5 + 0.01 * ((i * 7) % kRuns); };
  const auto start = [&](int i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const RungPlace place = enter(sweep, name(i), value(i));
      ::_exit(place.goes_on() ? 0 : 1);
    }
    return child;
  };
  Random random(1, Purpose::kTest, 0);
  std::vector<std::set<int>> answers(kRuns);
  for (int kills = 0; kills < 100;) {
    std::vector<pid_t> children;
    for (int i = 0; i < kRuns; ++i) children.push_back(start(i));
    for (int i = 0; i < kRuns; ++i) {
      if (random.chance(0.5)) {
        ::usleep(static_cast<useconds_t>(random.below(500)));
        ::kill(children[i], SIGKILL);
        ++kills;
      }
      int status = 0;
      ::waitpid(children[i], &status, 0);
      if (WIFEXITED(status)) answers[i].insert(WEXITSTATUS(status));
    }
  }
  for (int i = 0; i < kRuns; ++i)
    answers[i].insert(enter(sweep, name(i), value(i)).goes_on() ? 0 : 1);
  for (const auto& answer : answers) CHECK(answer.size() == 1);
  const fs::path folder = sweep.path() / ".rungs/epoch-1";
  std::set<std::string> runs;
  for (int n = 1; n <= kRuns; ++n) {
    const std::string number = std::to_string(n);
    const std::string text = read_text(
        folder / (std::string(4 - number.size(), '0') + number + ".json"));
    const auto at = text.find("run ", text.find("\"run\":"));
    runs.insert(text.substr(at, text.find('"', at) - at));
  }
  CHECK(runs.size() == kRuns);
  CHECK_FALSE(fs::exists(folder / "0017.json"));
}
