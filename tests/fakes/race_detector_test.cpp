#include "fakes/fake_cudart/race_detector.hpp"

#include <array>

#include "support/catch.hpp"

namespace fake_cuda {
namespace {

constexpr StreamId kCompute = 1, kCopy = 2, kNccl = 3;
constexpr EventId kEvent = 100;

struct Uses {
  RaceDetector detector;
  std::array<std::byte, 64> memory{};

  std::string use(StreamId stream, Use use, size_t begin = 0, size_t end = 64) {
    return detector
        .work(stream, use == Use::kRead ? "reader" : "writer",
              {{memory.data() + begin, end - begin, use}})
        .value_or("");
  }
  std::string reads(StreamId stream) { return use(stream, Use::kRead); }
  std::string writes(StreamId stream) { return use(stream, Use::kWrite); }
};

TEST_CASE("work of one stream needs no event") {
  Uses uses;
  CHECK(uses.writes(kCompute) == "");
  CHECK(uses.reads(kCompute) == "");
  CHECK(uses.writes(kCompute) == "");
}

TEST_CASE("a read of another stream without an event is named") {
  Uses uses;
  CHECK(uses.writes(kCompute) == "");
  CHECK(uses.reads(kCopy) ==
        "reader on stream 2 reads what writer on stream 1 writes, and no event "
        "orders the two");
}

TEST_CASE("a write over what another stream still reads is named") {
  Uses uses;
  CHECK(uses.reads(kCompute) == "");
  CHECK(uses.reads(kCopy) == "");
  CHECK(uses.writes(kCompute) ==
        "writer on stream 1 writes what reader on stream 2 reads, and no event "
        "orders the two");
}

TEST_CASE("an event orders what came before its record, and no more") {
  Uses uses;
  uses.writes(kCompute);
  uses.detector.recorded(kEvent, kCompute);
  uses.detector.stream_waits(kCopy, kEvent);
  CHECK(uses.reads(kCopy) == "");
  uses.writes(kNccl);  // a race that was told of already
  uses.detector.stream_waits(kCopy, kEvent);
  CHECK(uses.reads(kCopy) != "");
}

TEST_CASE("a wait counts for the last record before it") {
  Uses uses;
  uses.detector.recorded(kEvent, kCompute);
  uses.detector.stream_waits(kCopy, kEvent);
  uses.writes(kCompute);
  uses.detector.recorded(kEvent, kCompute);
  CHECK(uses.reads(kCopy) != "");
}

TEST_CASE("order passes on over a third stream and over the host") {
  Uses uses;
  uses.writes(kCompute);
  uses.detector.recorded(kEvent, kCompute);
  uses.detector.stream_waits(kNccl, kEvent);
  uses.detector.recorded(kEvent + 1, kNccl);
  uses.detector.stream_waits(kCopy, kEvent + 1);
  CHECK(uses.writes(kCopy) == "");
  uses.detector.host_waited_for_stream(kCopy);
  CHECK(uses.writes(kNccl) == "");
  uses.detector.recorded(kEvent, kNccl);
  uses.detector.host_waited_for_event(kEvent);
  CHECK(uses.writes(kCompute) == "");
}

TEST_CASE("bytes are told apart") {
  Uses uses;
  CHECK(uses.use(kCompute, Use::kWrite, 0, 32) == "");
  CHECK(uses.use(kCopy, Use::kWrite, 32, 64) == "");
  CHECK(uses.use(kCompute, Use::kRead, 0, 32) == "");
  CHECK(uses.use(kCompute, Use::kRead, 31, 33) != "");
  CHECK(uses.use(kCopy, Use::kWrite, 33, 48) == "");
  CHECK(uses.use(kNccl, Use::kWrite, 63, 64) != "");
}

}  // namespace
}  // namespace fake_cuda
