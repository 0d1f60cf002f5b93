// Finds two uses of memory that nothing orders, whether or not they come at the
// same time here. Every stream and the host have a vector clock:
//
//   work on a stream    its clock takes the host's (a launch is after what the
//                       host did) and counts one up
//   event recorded      the event keeps the stream's clock
//   stream waits event  the stream's clock takes the event's
//   host waits          the host's clock takes the event's or the stream's
//
// A read is good when its stream's clock has seen the last write of each byte,
// a write when it has seen all reads since then too. All of it happens when
// work is enqueued, so delays play no part and a finding is the same each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fake_cuda {

using StreamId = uintptr_t;  // 0 is the host
using EventId = uintptr_t;

enum class Use { kRead, kWrite };

class RaceDetector {
 public:
  // Work `what` enqueued on `stream` uses the bytes. Returns what is wrong.
  struct Range {
    const void* begin;
    size_t bytes;
    Use use;
  };
  std::optional<std::string> work(StreamId stream, const std::string& what,
                                  const std::vector<Range>& ranges);
  void recorded(EventId event, StreamId stream);
  void stream_waits_for_stream(StreamId stream, StreamId other);
  void stream_waits(StreamId stream, EventId event);
  void host_waited_for_event(EventId event);
  void host_waited_for_stream(StreamId stream);

 private:
  using Clock = std::map<StreamId, uint64_t>;
  struct Access {
    StreamId stream;
    uint64_t at;
    const std::string* what;
  };
  // The last uses of bytes [key, end).
  struct Span {
    uintptr_t end;
    std::optional<Access> write;
    std::vector<Access> reads;  // since then, the last of each stream
  };
  using Spans = std::map<uintptr_t, Span>;

  static void take(Clock& into, const Clock& from);
  Spans::iterator cut(uintptr_t at);
  std::optional<std::string> use(const Clock& clock, const Access& access,
                                 const Range& range);
  const std::string* name(const std::string& what);

  std::mutex mutex_;  // guards what follows
  Clock host_;
  std::map<StreamId, Clock> streams_;
  std::map<EventId, Clock> events_;
  Spans spans_;  // that do not overlap
  std::map<std::string, int> names_;
};

}  // namespace fake_cuda
