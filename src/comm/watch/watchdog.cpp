// Who talks to whom, with two hosts of two ranks each; observers are ranks 0
// and 2:
//
//      host a                                host b
//   rank 0: reporter, observer <-- report -- rank 2: reporter (leads), observer
//      |                        -- answer -->   |
//   shared memory of a                       shared memory of b
//      |                                        |
//   rank 1: reporter           <- same way -  rank 3: reporter
//           (leads none)                              (leads none)
//
// Here are the thread that drives the two parts, and what connects them at the
// start. Reporter and observer know neither sockets nor the clock nor how a
// process ends: those are passed in.
#include "chexnet/comm/watch/watchdog.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/timeouts.hpp"
#include "heartbeat_table.hpp"
#include "messages.hpp"
#include "observer.hpp"
#include "observer_links.hpp"
#include "peers.hpp"
#include "report_receiver.hpp"
#include "reporter.hpp"
#include "run_end.hpp"

namespace chexnet {
namespace {

constexpr int kHeartbeatMs = 50;
// The shortest time between two polls, so that a sender without end does not
// keep a core busy.
constexpr int kLookEveryMs = 10;
constexpr double kLongestSilence_s = 60;

WatchTimeouts timeouts_of(double timeout_s) {
  return {timeout_s + kWatchdogAfter_s, std::min(timeout_s, kLongestSilence_s)};
}

bool is_among(const std::vector<int>& ranks, int rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

// Number, host and GPU of each rank.
std::vector<RankView> named_ranks(const std::vector<Peer>& peers) {
  std::vector<RankView> ranks;
  for (const auto& peer : peers) {
    RankView& view = ranks.emplace_back();
    view.rank = static_cast<int>(ranks.size()) - 1;
    view.host = peer.host;
    view.gpu = peer.gpu;
  }
  return ranks;
}

}  // namespace

class Watchdog::Thread {
 public:
  Thread(Communicator& comm, const Options& options)
      : rank_(comm.rank()),
        table_(comm),
        peers_(gather_peers(comm, options.gpu)),
        observers_(choose_observers(peers_)),
        end_(process_end(options.run_folder, options.resume_command,
                         [this, act = options.last_act] {
                           if (act) act(table_.own().phase);
                         })) {
    if (!on_one_host(peers_)) link_hosts(comm);
    start_parts(timeouts_of(options.timeout_s));
    // Heartbeats begin on all ranks before anyone reads them.
    comm.barrier();
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Thread() { thread_ = {}; }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  PhaseSlot* slot() { return &table_.own().phase; }

 private:
  const Peer& own() const { return peers_[static_cast<size_t>(rank_)]; }

  // On one host all reports go through shared memory, and no port is open. Else
  // the observers listen, and every other host learns where.
  void link_hosts(Communicator& comm) {
    tokens_.report = shared_token(comm);
    tokens_.answer = shared_token(comm);
    links_.emplace(tokens_.report, now_s);
    if (is_among(observers_, rank_))
      receiver_.emplace(addresses_to_listen_on(peers_, rank_), tokens_.report);
    const auto listening =
        receiver_ ? receiver_->endpoints() : std::vector<Endpoint>{};
    const auto endpoints = gather_endpoints(comm, listening);

    for (const int observer : observers_) {
      const auto at = static_cast<size_t>(observer);
      if (peers_[at].host == own().host)
        observer_here_ = true;
      else
        links_->add(endpoints[at]);
    }
  }

  void start_parts(const WatchTimeouts& timeouts) {
    if (!links_) links_.emplace("", now_s);
    reporter_.emplace(Reporter::Options{.host = own().host,
                                        .local_rank = own().local_rank,
                                        .observers = observers_,
                                        .observer_here = observer_here_,
                                        .silence_s = timeouts.silence_s,
                                        .answer_token = tokens_.answer},
                      table_, *links_, *end_, now_s);
    if (!is_among(observers_, rank_)) return;
    observer_.emplace(Observer::Options{.rank = rank_,
                                        .observers = observers_,
                                        .timeouts = timeouts,
                                        .answer_token = tokens_.answer},
                      named_ranks(peers_), table_,
                      receiver_ ? &*receiver_ : nullptr, *end_, now_s);
  }

  void run(const std::stop_token& stop) {
    SuspensionMeter suspension(now_s());
    while (!stop.stop_requested()) {
      const bool resumed = suspension.look(now_s()) > 0;
      guarded([&] {
        reporter_->heartbeat(resumed);
        if (observer_) observer_->look(resumed);
      });
      rest();
    }
    guarded([&] { reporter_->say_goodbye(); });
  }

  // The next heartbeat may do better; without one this rank would be taken for
  // dead.
  template <class Action>
  void guarded(Action action) {
    try {
      action();
    } catch (const std::exception& e) {
      if (!warned_) log_warning(std::string("[watchdog] ") + e.what());
      warned_ = true;
    }
  }

  // Until a message comes or it is time for the next heartbeat.
  void rest() {
    std::vector<pollfd> fds;
    if (receiver_)
      for (const int fd : receiver_->descriptors(now_s()))
        fds.push_back({fd, POLLIN, 0});
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookEveryMs));
    poll(fds.data(), fds.size(), kHeartbeatMs - kLookEveryMs);
  }

  int rank_;
  HeartbeatTable table_;
  std::vector<Peer> peers_;     // [rank]
  std::vector<int> observers_;  // ranks
  RunTokens tokens_;
  bool observer_here_ = false;          // one of them is on this host
  std::optional<ObserverLinks> links_;  // to those on other hosts
  // Of an observer that other hosts report to.
  std::optional<ReportReceiver> receiver_;
  std::unique_ptr<RunEnd> end_;
  std::optional<Reporter> reporter_;
  std::optional<Observer> observer_;  // of an observer
  bool warned_ = false;
  std::jthread thread_;
};

Watchdog::Watchdog(Communicator& comm, Profiler& profiler,
                   const Options& options)
    : profiler_(profiler) {
  thread_ = std::make_unique<Thread>(comm, options);
  profiler_.set_slot(thread_->slot());
}

Watchdog::~Watchdog() {
  profiler_.ended();
  profiler_.set_slot(nullptr);
}

}  // namespace chexnet
