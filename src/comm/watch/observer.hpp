// What the watchdog of two ranks of a run also does: collects what is known of
// every rank, finds a failure, and announces it once.
//
//   shared memory of this host --+
//   reports of other hosts ------+--> survey --> detect_failure
//                                                    |
//                               post-mortem, sentence and end code
//                                                    |
//   every host that reports  <------ end code -------+
//
// Two observers, so that each can name the other. The first speaks at once; the
// second leaves it to the first, unless the failure is the first one's end. One
// thread.
#pragma once

#include <vector>

#include "host_ranks.hpp"
#include "run_end.hpp"
#include "transport.hpp"

namespace chexnet {

class Observer {
 public:
  struct Options {
    int rank = 0;
    std::vector<int> observers;  // both, in the order in which they speak
    WatchTimeouts timeouts;
    std::string answer_token;
  };
  // `ranks` [rank]: number, host and GPU of each. `inbox` null: all ranks are
  // on this host. All arguments must outlive the object. Every rank counts as
  // heard at the start.
  Observer(Options options, std::vector<RankView> ranks, HostRanks& host,
           ReportInbox* inbox, RunEnd& end, SteadyClock clock);

  // Call it some 20 times a second. `resumed`: the job was suspended until now.
  void look(bool resumed);

 private:
  void take_reports();
  std::vector<RankView> survey();
  bool must_wait(const Failure& failure) const;
  void announce(const Failure& failure, const std::vector<RankView>& views);

  Options options_;
  std::vector<RankView> views_;  // [rank], as last reported
  HostRanks& host_;
  ReportInbox* inbox_;
  RunEnd& end_;
  SteadyClock clock_;
  std::vector<double> heard_s_;  // [rank], its host
  double suspected_s_, resumed_s_;
  bool announced_ = false;
};

}  // namespace chexnet
