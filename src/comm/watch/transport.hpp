// How reports and answers travel between hosts. The watchdog's parts see these
// two interfaces alone: TCP implements them in a run (observer_links.hpp,
// report_receiver.hpp), queues in tests.
//
//   leader of a host --report--> observer      every 0.25 s, one line
//                    <--answer--               "go on", or the exit code with
//                                              which to end
//
// Nothing blocks, and any line may be lost: the next report replaces it. After
// a reconnect an older line may come after a newer one.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace chexnet {

using SteadyClock = std::function<double()>;  // seconds

// The reporter's side.
class ReportChannel {
 public:
  virtual ~ReportChannel() = default;
  // On other hosts; they are numbered from 0.
  virtual size_t observers() const = 0;
  // Sends a report to one of them and returns what it answered since the last
  // call.
  virtual std::vector<std::string> exchange(size_t observer,
                                            const std::string& report) = 0;
  // It has not answered for a while: tries another way to it, when this one has
  // had its time.
  virtual void reconnect(size_t observer) = 0;
};

// The observer's side.
class ReportInbox {
 public:
  // Gets a report and gives the answer to it; empty: that was no report.
  using Use = std::function<std::string(const std::string&)>;

  virtual ~ReportInbox() = default;
  // Takes what has come.
  virtual void take(double now_s, const Use& use) = 0;
  // The same line to all who report.
  virtual void tell_all(const std::string& line) = 0;
};

}  // namespace chexnet
