#include "fakes/fake_cudart/race_detector.hpp"

#include <algorithm>
#include <cassert>

namespace fake_cuda {
namespace {

std::string stream_text(StreamId stream) {
  return "stream " + std::to_string(stream);
}

}  // namespace

void RaceDetector::take(Clock& into, const Clock& from) {
  for (const auto& [stream, at] : from) {
    uint64_t& own = into[stream];
    own = std::max(own, at);
  }
}

const std::string* RaceDetector::name(const std::string& what) {
  return &names_.try_emplace(what, 0).first->first;
}

// The spans are cut so that one begins at `at`, if any holds it.
RaceDetector::Spans::iterator RaceDetector::cut(uintptr_t at) {
  auto next = spans_.lower_bound(at);
  if (next != spans_.end() && next->first == at) return next;
  if (next == spans_.begin()) return next;
  auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Span right = before->second;
  before->second.end = at;
  return spans_.emplace_hint(next, at, std::move(right));
}

std::optional<std::string> RaceDetector::use(const Clock& clock,
                                             const Access& access,
                                             const Range& range) {
  const auto seen = [&](const Access& other) {
    if (other.stream == access.stream) return true;
    const auto found = clock.find(other.stream);
    return found != clock.end() && found->second >= other.at;
  };
  std::optional<std::string> wrong;
  const auto conflict = [&](const Access& other, const char* verb) {
    if (wrong || seen(other)) return;
    wrong = *access.what + " on " + stream_text(access.stream) +
            (range.use == Use::kWrite ? " writes" : " reads") + " what " +
            *other.what + " on " + stream_text(other.stream) + " " + verb +
            ", and no event orders the two";
  };
  const auto begin = reinterpret_cast<uintptr_t>(range.begin);
  const uintptr_t end = begin + range.bytes;
  cut(end);
  auto span = cut(begin);
  uintptr_t at = begin;
  while (at < end) {
    if (span == spans_.end() || span->first > at) {
      const uintptr_t gap =
          span == spans_.end() ? end : std::min(end, span->first);
      span = spans_.emplace_hint(span, at, Span{gap, {}, {}});
    }
    Span& bytes = span->second;
    if (bytes.write) conflict(*bytes.write, "writes");
    if (range.use == Use::kWrite) {
      for (const Access& read : bytes.reads) conflict(read, "reads");
    } else {
      std::erase_if(bytes.reads, [&](const Access& read) {
        return read.stream == access.stream;
      });
      bytes.reads.push_back(access);
    }
    at = bytes.end;
    ++span;
  }
  if (range.use == Use::kWrite) {  // one span again
    spans_.erase(spans_.lower_bound(begin), span);
    spans_.emplace_hint(span, begin, Span{end, access, {}});
  }
  return wrong;
}

std::optional<std::string> RaceDetector::work(
    StreamId stream, const std::string& what,
    const std::vector<Range>& ranges) {
  assert(stream != 0);
  const std::lock_guard lock(mutex_);
  Clock& clock = streams_[stream];
  take(clock, host_);
  const Access access{stream, ++clock[stream], name(what)};
  std::optional<std::string> wrong;
  for (const Range& range : ranges) {
    if (range.bytes == 0) continue;
    const auto found = use(clock, access, range);
    if (!wrong) wrong = found;
  }
  return wrong;
}

void RaceDetector::recorded(EventId event, StreamId stream) {
  const std::lock_guard lock(mutex_);
  Clock& clock = streams_[stream];
  take(clock, host_);
  events_[event] = clock;
}

void RaceDetector::stream_waits(StreamId stream, EventId event) {
  const std::lock_guard lock(mutex_);
  take(streams_[stream], events_[event]);
}

void RaceDetector::stream_waits_for_stream(StreamId stream, StreamId other) {
  const std::lock_guard lock(mutex_);
  Clock& clock = streams_[stream];
  take(clock, host_);
  take(clock, streams_[other]);
}

void RaceDetector::host_waited_for_event(EventId event) {
  const std::lock_guard lock(mutex_);
  take(host_, events_[event]);
}

void RaceDetector::host_waited_for_stream(StreamId stream) {
  const std::lock_guard lock(mutex_);
  take(host_, streams_[stream]);
}

}  // namespace fake_cuda
