#include "chexnet/core/profiler.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {
void rest(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}
double of(const Profiler::Seconds& seconds, Phase phase) {
  return seconds[static_cast<size_t>(phase)];
}
}  // namespace

TEST_CASE("each second belongs to the innermost phase, and all add up") {
  const double start = now_s();
  Profiler profiler;
  PhaseSlot slot;
  profiler.set_slot(&slot);
  profiler.record(std::make_shared<Recording>(2));
  {
    const Profiler::Span forward(&profiler, Phase::kForward);
    rest(5);
    {
      const Profiler::Span wait(&profiler, Phase::kControl, "gather", 7);
      CHECK(slot.phase == static_cast<uint32_t>(Phase::kControl));
      CHECK(slot.since_s > start);
      rest(10);
    }
    CHECK(slot.phase == static_cast<uint32_t>(Phase::kForward));
  }
  const Profiler::Span none(nullptr, Phase::kForward);
  { const Profiler::Span dropped(&profiler, Phase::kOptimizer); }
  const auto seconds = profiler.seconds();
  double sum = 0;
  for (const double s : seconds) sum += s;
  const double elapsed = now_s() - start;
  CHECK(sum <= elapsed);
  CHECK(of(seconds, Phase::kForward) >= 0.005);
  CHECK(of(seconds, Phase::kControl) >= 0.010);
  CHECK(of(seconds, Phase::kForward) + of(seconds, Phase::kControl) <= sum);

  const auto recorded = profiler.recording()->events();
  REQUIRE(recorded.size() == 2);
  const TimelineEvent &inner = recorded[0], &outer = recorded[1];
  CHECK(std::string(inner.name) == "gather");
  CHECK(inner.number == 7);
  CHECK(outer.begin_s <= inner.begin_s);
  CHECK(inner.end_s <= outer.end_s);
  CHECK(profiler.recording()->dropped() == 1);
  profiler.record(nullptr);
  { const Profiler::Span nowhere(&profiler, Phase::kForward); }
  CHECK(profiler.recording() == nullptr);
}

TEST_CASE("threads add to one recording while another reads it") {
  // A span that two threads wrote, or that was read before it was whole, would
  // have an end that does not belong to its begin.
  constexpr int kThreads = 4, kSpans = 5000, kKept = 12000;
  Recording recording(kKept);
  const auto all_whole = [&] {
    const auto events = recording.events();
    return std::ranges::all_of(events, [](const TimelineEvent& e) {
      return e.end_s == e.begin_s + e.lane && e.number == 7;
    });
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kSpans; ++i)
        recording.add(
            {"image", 7, Track::kLoader, t, double(i), double(i + t)});
    });
  bool whole = true;
  while (recording.dropped() == 0) whole &= all_whole();
  threads.clear();
  CHECK(whole);
  CHECK(all_whole());
  CHECK(recording.events().size() == kKept);
  CHECK(recording.dropped() == size_t{kThreads} * kSpans - kKept);
}

TEST_CASE("rebooked seconds change their phase and not their sum") {
  Profiler profiler;
  profiler.rebook(Phase::kBackward, Phase::kAllReduceWait, 2);
  const auto of = [&](Phase phase) {
    return profiler.seconds()[static_cast<size_t>(phase)];
  };
  CHECK(of(Phase::kBackward) == -2);
  CHECK(of(Phase::kAllReduceWait) == 2);
}

TEST_CASE("observers see the phase in which a rank failed") {
  Profiler profiler;
  PhaseSlot slot;
  profiler.set_slot(&slot);
  const auto shown = [&] { return static_cast<Phase>(slot.phase.load()); };
  try {
    const Profiler::Span outer(&profiler, Phase::kForward);
    const Profiler::Span inner(&profiler, Phase::kBackward);
    throw DeviceError("its GPU hangs");
  } catch (const DeviceError&) {
    CHECK(shown() == Phase::kBackward);
  }
  { const Profiler::Span next(&profiler, Phase::kCheckpoint); }
  CHECK(shown() == Phase::kOther);
}
