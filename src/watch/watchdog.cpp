#include "chexnet/watch/watchdog.hpp"

#include <poll.h>

#include <algorithm>
#include <thread>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/watch/hard_exit.hpp"
#include "chexnet/watch/heartbeat_table.hpp"
#include "chexnet/watch/postmortem.hpp"
#include "observer_links.hpp"
#include "peers.hpp"
#include "report_receiver.hpp"

namespace chexnet {
namespace {

constexpr int kHeartbeatMs = 50;
// The least between two looks, so that who sends without end does not keep a core busy.
constexpr int kLookEveryMs = 10;
constexpr double kReportEvery = 0.25;
constexpr double kLongestSilence = 60;
// A leader this long without a heartbeat is replaced by the next rank of its host.
constexpr double kLeaderSilence = 1;
// The second observer lets the first one speak.
constexpr double kSecondsAfterFirst = 0.6;
// A rank that does not run also lets the others wait: what is known more exactly is said.
constexpr double kSilenceFirst = 0.3;
// While the launcher ends the job there is a second to find out why.
constexpr double kSilenceWhileEnding = 1;
constexpr double kPause = 2;     // a thread that did not run for so long was stopped itself
constexpr double kNever = -1e9;  // on the steady clock

constexpr int kFileTimeout_s = 5;  // a file system or a log that hangs must not keep us

double age(double since) { return std::max(0.0, now_s() - since); }

}  // namespace

class Watchdog::Thread {
 public:
  Thread(Communicator& comm, Options options)
      : options_(std::move(options)),
        rank_(comm.rank()),
        table_(comm),
        timeouts_{options_.timeout_s + kSilenceFirst,
                  std::min(options_.timeout_s, kLongestSilence)},
        peers_(gather_peers(comm, options_.gpu)),
        observers_(choose_observers(peers_)),
        observes_(std::ranges::find(observers_, rank_) != observers_.end()) {
    link_hosts(comm);
    for (int r = 0; r < static_cast<int>(peers_.size()); ++r) views_.push_back(first_view(r));
    heard_s_.assign(peers_.size(), now_s());
    // Heartbeats begin on all ranks before anyone looks at them.
    comm.barrier();
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }
  ~Thread() { thread_ = {}; }
  PhaseSlot* slot() { return &table_.own().phase; }

 private:
  // On one host all reports go through shared memory, and no port is open. Else the observers
  // listen, and every other host learns where.
  void link_hosts(Communicator& comm) {
    if (on_one_host(peers_)) return;
    tokens_.report = shared_token(comm);
    tokens_.answer = shared_token(comm);
    links_.set_tokens(tokens_);
    if (observes_) receiver_.emplace(addresses_to_listen_on(peers_, rank_), tokens_.report);
    const auto endpoints =
        gather_endpoints(comm, receiver_ ? receiver_->endpoints() : std::vector<Endpoint>{});
    for (const int observer : observers_) {
      const auto at = static_cast<std::size_t>(observer);
      if (peers_[at].host == own().host)
        observer_here_ = true;
      else
        links_.add(endpoints[at]);
    }
  }

  const Peer& own() const { return peers_[static_cast<std::size_t>(rank_)]; }

  RankView first_view(int rank) const {
    RankView view;
    view.rank = rank;
    view.host = peers_[static_cast<std::size_t>(rank)].host;
    view.gpu = peers_[static_cast<std::size_t>(rank)].gpu;
    return view;
  }

  // What this host's shared memory says of one of its ranks.
  RankView look_at(int local_rank) {
    RankView view = table_.view(local_rank);
    const Peer& peer = peers_[static_cast<std::size_t>(view.rank)];
    view.host = peer.host;
    view.gpu = peer.gpu;
    return view;
  }

  void run(const std::stop_token& stop) {
    looked_s_ = now_s();
    while (!stop.stop_requested()) {
      guarded([&] { heartbeat(); });
      rest();
    }
    reported_s_ = kNever;
    guarded([&] {
      if (leads()) report();  // that this rank ended
    });
  }

  // The next heartbeat may do better; without one this rank would be taken for dead.
  template <class Action>
  void guarded(Action action) {
    try {
      action();
    } catch (const std::exception& e) {
      if (!warned_) log_warning(std::string("[watchdog] ") + e.what());
      warned_ = true;
    }
  }

  void heartbeat() {
    // A job that was suspended as a whole (Slurm does) finds all ranks silent when it continues.
    const bool resumed = age(looked_s_) > kPause;
    if (resumed) resumed_s_ = now_s();
    looked_s_ = now_s();
    table_.own().heartbeat_s = looked_s_;
    if (const int code = table_.end_code(); code != 0) {
      // The observer of this host, if there is one, is still telling the others.
      std::this_thread::sleep_for(std::chrono::milliseconds(2 * kHeartbeatMs));
      exit_and_end_launcher(code);
    }
    const bool led = leads();
    // Who takes over, or was stopped, has heard nothing lately and gives its observers time.
    if ((led && !led_) || resumed) links_.restart_timeouts();
    led_ = led;
    if (led) report();
    if (observes_) observe();
  }

  // Until a message comes or it is time for the next heartbeat.
  void rest() {
    std::vector<pollfd> fds;
    if (receiver_)
      for (const int fd : receiver_->descriptors(now_s())) fds.push_back({fd, POLLIN, 0});
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookEveryMs));
    poll(fds.data(), fds.size(), kHeartbeatMs - kLookEveryMs);
  }

  bool leads() {
    if (links_.empty()) return false;
    for (int i = 0; i < own().local_rank; ++i) {
      const RankView view = look_at(i);
      if (!view.ended && !view.gone && view.heartbeat_age_s < kLeaderSilence) return false;
    }
    return true;
  }

  void report() {
    if (age(reported_s_) < kReportEvery) return;
    reported_s_ = now_s();
    std::vector<RankView> views;
    for (int i = 0; i < table_.size(); ++i) views.push_back(look_at(i));
    if (const int code = links_.exchange(report_line(views)); code != 0) table_.end_code() = code;
    if (!observer_here_ && !links_.heard(timeouts_.silence_s)) give_up();
  }

  // No observer answers: this host is the one that is cut off.
  void give_up() {
    const int code = static_cast<int>(ExitCode::kDevice);
    exit_within(kFileTimeout_s, code);
    log_error("[watchdog] " + own().host + ": no heartbeat from ranks " +
              std::to_string(observers_.front()) + " and " + std::to_string(observers_.back()) +
              " for " + fixed(timeouts_.silence_s, 0) +
              " s: this host is cut off from them and ends its ranks");
    table_.end_code() = code;
  }

  void take_reports() {
    if (!receiver_) return;
    receiver_->take(now_s(), [&](const std::string& line) -> std::string {
      const auto ranks = read_report(line, views_);
      if (!ranks) return "";
      for (const int rank : *ranks) heard_s_[static_cast<std::size_t>(rank)] = now_s();
      return answer_line(tokens_.answer, 0);
    });
  }

  // All ranks as they are now.
  std::vector<RankView> survey() {
    for (int i = 0; i < table_.size(); ++i) {
      const RankView view = look_at(i);
      views_[static_cast<std::size_t>(view.rank)] = view;
      heard_s_[static_cast<std::size_t>(view.rank)] = now_s();
    }
    std::vector<RankView> now = views_;
    for (auto& view : now) {
      view.host_silent_s = age(heard_s_[static_cast<std::size_t>(view.rank)]);
      // Of a silent host nobody knows whether its ranks still run.
      if (view.host_silent_s < kLeaderSilence) view.heartbeat_age_s += view.host_silent_s;
      view.phase_age_s += view.host_silent_s;
    }
    return now;
  }

  void observe() {
    take_reports();
    const auto now = survey();
    if (age(resumed_s_) < timeouts_.silence_s) return;
    WatchTimeouts timeouts = timeouts_;
    if (launcher_ends_job()) timeouts.silence_s = std::min(timeouts.silence_s, kSilenceWhileEnding);
    const auto failure = detect_failure(now, timeouts);
    if (!failure) {
      suspected_s_ = kNever;
      return;
    }
    if (suspected_s_ == kNever) suspected_s_ = now_s();
    const bool about_first =
        std::ranges::find(failure->ranks, observers_.front()) != failure->ranks.end();
    const bool first = rank_ == observers_.front();
    const bool first_cannot = about_first && (failure->cause == FailureCause::kDied ||
                                              failure->cause == FailureCause::kStopped);
    // In all else the second observer lets the first speak: it cannot tell a host that is down from
    // a link of its own that is cut.
    if (!first && !first_cannot && age(suspected_s_) < kSecondsAfterFirst) return;
    announce(*failure, now);
  }

  void announce(const Failure& failure, const std::vector<RankView>& views) {
    exit_within(kFileTimeout_s, failure.exit_code());
    try {
      if (!read_postmortem(options_.run_folder)) explain(failure, views);
    } catch (const std::exception& e) {
      log_error(e.what());
    }
    if (receiver_) receiver_->tell_all(answer_line(tokens_.answer, failure.exit_code()));
    table_.end_code() = failure.exit_code();
  }

  void explain(const Failure& failure, const std::vector<RankView>& views) {
    PostMortem report;
    report.time = utc_time();
    report.cause = cause_name(failure.cause);
    report.ranks = failure.ranks;
    report.exit_code = failure.exit_code();
    report.what = failure_text(failure, views);
    report.checkpoint = last_checkpoint(options_.run_folder);
    report.resume = options_.resume_command;
    report.views = views;
    log_error("[watchdog] " + report.sentence());
    write_postmortem(options_.run_folder, report);
  }

  Options options_;
  int rank_;
  HeartbeatTable table_;
  WatchTimeouts timeouts_;
  std::vector<Peer> peers_;  // [rank]
  RunTokens tokens_;
  std::vector<int> observers_;
  bool observes_ = false, led_ = false, warned_ = false;
  ObserverLinks links_;                     // to those on other hosts
  bool observer_here_ = false;              // one of them is on this host
  std::optional<ReportReceiver> receiver_;  // of an observer that other hosts report to
  std::vector<RankView> views_;             // [rank], as last reported
  std::vector<double> heard_s_;             // [rank]
  double reported_s_ = kNever, suspected_s_ = kNever, resumed_s_ = kNever, looked_s_ = kNever;
  std::jthread thread_;
};

Watchdog::Watchdog(Communicator& comm, Profiler& profiler, Options options) : profiler_(profiler) {
  if (comm.size() == 1) return;
  thread_ = std::make_unique<Thread>(comm, std::move(options));
  profiler_.set_slot(thread_->slot());
}

Watchdog::~Watchdog() {
  if (thread_ == nullptr) return;
  profiler_.ended();
  profiler_.set_slot(nullptr);
}

}  // namespace chexnet
