#include "chexnet/core/recorder.hpp"

#include <chrono>
#include <thread>

#include "chexnet/core/resources.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {
void rest(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
double of(const Recorder::Seconds& seconds, Operation operation) {
  return seconds[static_cast<std::size_t>(operation)];
}
}  // namespace

TEST_CASE("each second belongs to the innermost operation, and all add up") {
  const double start = now_s();
  Recorder recorder;
  OperationBoard board;
  recorder.set_board(&board);
  recorder.start_timeline(2);
  {
    const Recorder::Span forward(&recorder, Operation::kForward);
    rest(5);
    {
      const Recorder::Span wait(&recorder, Operation::kControl, "gather", 7);
      CHECK(board.operation == static_cast<std::uint32_t>(Operation::kControl));
      CHECK(board.since_s > start);
      rest(10);
    }
    CHECK(board.operation == static_cast<std::uint32_t>(Operation::kForward));
  }
  const Recorder::Span none(nullptr, Operation::kForward);
  { const Recorder::Span dropped(&recorder, Operation::kOptimizer); }
  const auto seconds = recorder.seconds();
  double sum = 0;
  for (const double s : seconds) sum += s;
  const double elapsed = now_s() - start;
  CHECK(sum <= elapsed);
  CHECK(of(seconds, Operation::kForward) >= 0.005);
  CHECK(of(seconds, Operation::kControl) >= 0.010);
  CHECK(of(seconds, Operation::kForward) + of(seconds, Operation::kControl) <= sum);

  REQUIRE(recorder.timeline().size() == 2);
  const TimelineEvent &inner = recorder.timeline()[0], &outer = recorder.timeline()[1];
  CHECK(std::string(inner.name) == "gather");
  CHECK(inner.number == 7);
  CHECK(outer.begin_s <= inner.begin_s);
  CHECK(inner.end_s <= outer.end_s);
  CHECK(recorder.dropped() == 1);
}
