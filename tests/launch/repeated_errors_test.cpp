// An error that all ranks find is said once, whoever was first.
#include "launch/repeated_errors.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {

std::string passed(std::string_view text, size_t piece) {
  RepeatedErrors errors;
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    out += errors.pass(text.substr(0, piece));
  return out + errors.rest();
}

}  // namespace

TEST_CASE("no more is kept than a line may have") {
  RepeatedErrors errors;
  const std::string piece(1 << 12, 'x');
  size_t kept = 0;
  for (int i = 0; i < 1000; ++i) {
    kept += piece.size();
    kept -= errors.pass(piece).size();
    REQUIRE(kept < 1 << 18);
  }
}

TEST_CASE("an error of all ranks is passed on once") {
  struct Case {
    const char *what, *said, *passed;
  };
  for (const auto& c : std::vector<Case>{
           {"the same", "rank 2: error: a\nerror: a\nrank 10: error: a\n",
            "rank 2: error: a\n"},
           {"others", "error: a\nrank 1: error: b\n",
            "error: a\nrank 1: error: b\n"},
           {"of several lines",
            "error: a:\n  x\nHint: y\nrank 1: error: a:\n  x\nHint: y\nstep "
            "1\n",
            "error: a:\n  x\nHint: y\nstep 1\n"},
           {"what comes between",
            "error: a\nstep 5\nrank 1: warning: w\nrank 1: error: a\nstep 6\n"
            "step 6\n",
            "error: a\nstep 5\nrank 1: warning: w\nstep 6\nstep 6\n"},
           {"no error", "rank 1: w\nrank 1: w\nrank x: error: a\n",
            "rank 1: w\nrank 1: w\nrank x: error: a\n"},
           {"no end", "error: a\nrank 1: error: a",
            "error: a\nrank 1: error: a"},
           {"nothing", "", ""}})
    for (const size_t piece : {1, 7, 1000}) {
      INFO(c.what << ", pieces of " << piece);
      CHECK(passed(c.said, piece) == c.passed);
    }
}
