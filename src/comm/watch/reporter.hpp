// What the watchdog of every rank does: shows that this process runs and, while
// this rank leads its host, tells the observers on other hosts how the host's
// ranks are.
//
//   rank 2 --+
//   rank 3 --+--> shared memory --> leader --report--> observers
//   rank 4 --+        ^               |    <--answer--
//                     +-- end code ---+
//
// The leader is the first rank of the host that runs: when it dies or is
// stopped, the next one takes over within a second. One thread.
#pragma once

#include <string>
#include <vector>

#include "host_ranks.hpp"
#include "run_end.hpp"
#include "transport.hpp"

namespace chexnet {

class Reporter {
 public:
  // A leader this long without a heartbeat is replaced by the next rank of its
  // host.
  static constexpr double kLeaderSilence_s = 1;
  static constexpr double kReportEvery_s = 0.25;

  struct Options {
    std::string host;  // for messages
    int local_rank = 0;
    std::vector<int> observers;  // their ranks, for messages
    // One of them is on this host, so the host is never cut off.
    bool observer_here = false;
    double silence_s = 60;  // so long without an answer, and it is
    std::string answer_token;
  };
  // `channel`: to the observers on other hosts. All arguments must outlive the
  // object.
  Reporter(Options options, HostRanks& host, ReportChannel& channel,
           RunEnd& end, SteadyClock clock);

  // Call it some 20 times a second. Ends the process when its host must end.
  // `resumed`: the job was suspended until now.
  void heartbeat(bool resumed);
  // That this rank ended in order, while it leads.
  void say_goodbye();
  bool leads();

 private:
  void restart_timeouts();
  void report();
  // The end code of an answer, else 0.
  int exchange_all(const std::string& line);
  bool is_cut_off() const;
  void end_host();

  Options options_;
  HostRanks& host_;
  ReportChannel& channel_;
  RunEnd& end_;
  SteadyClock clock_;
  bool led_ = false;
  double reported_s_;
  std::vector<double> answered_s_;  // [observer of the channel]
};

}  // namespace chexnet
