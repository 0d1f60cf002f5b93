#include "chexnet/comm/watchdog.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "chexnet/comm/host_board.hpp"
#include "chexnet/comm/postmortem.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/last_exit.hpp"
#include "chexnet/launch/signals.hpp"
#include "observer_links.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

constexpr int kBeatMs = 50;
constexpr double kReportEvery = 0.25;
constexpr double kLongestSilence = 60;
// A leader this long without a beat is replaced by the next rank of its host.
constexpr double kLeaderSilence = 1;
// The second observer lets the first one speak.
constexpr double kSecondsAfterFirst = 0.6;
// A rank that does not run also lets the others wait: what is known more exactly is said.
constexpr double kSilenceFirst = 0.3;
// While the launcher ends the job there is a second to find out why.
constexpr double kSilenceWhileEnding = 1;
constexpr int kLauncherPatience = 3;
constexpr double kPause = 2;     // a thread that did not run for so long was stopped itself
constexpr double kNever = -1e9;  // on the steady clock

// What every rank tells all others once, at the start.
struct Peer {
  std::string host, gpu;
  int local_rank = 0, port = 0;
  std::vector<std::string> addresses;
};

double age(double since) { return std::max(0.0, now_s() - since); }

}  // namespace

class Watchdog::Thread {
 public:
  Thread(Communicator& comm, Options options)
      : options_(std::move(options)),
        rank_(comm.rank()),
        board_(comm),
        patience_{options_.timeout_s + kSilenceFirst,
                  std::min(options_.timeout_s, kLongestSilence)} {
    exchange(comm);
    for (int r = 0; r < static_cast<int>(peers_.size()); ++r) views_.push_back(first_view(r));
    heard_s_.assign(peers_.size(), now_s());
    // Beats begin on all ranks before anyone judges.
    comm.barrier();
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }
  ~Thread() { thread_ = {}; }
  OperationBoard* board() { return &board_.own().operation; }

 private:
  void exchange(Communicator& comm) {
    const std::string mine = json({{"host", host_name()},
                                   {"gpu", options_.gpu},
                                   {"local_rank", comm.world().local_rank},
                                   {"port", listener_.port()},
                                   {"addresses", own_addresses()}})
                                 .dump();
    for (const auto& text : gather_text(comm, mine)) {
      const auto peer = json::parse(text);
      peers_.push_back({peer["host"], peer["gpu"], peer["local_rank"], peer["port"],
                        peer["addresses"].get<std::vector<std::string>>()});
    }
    std::random_device random;
    // Keeps strangers' connections out.
    token_ = broadcast_text(comm, std::to_string(random()) + std::to_string(random()));
    observers_ = {0};
    const auto other =
        std::ranges::find_if(peers_, [&](const Peer& peer) { return peer.host != peers_[0].host; });
    if (other != peers_.end())
      observers_.push_back(static_cast<int>(other - peers_.begin()));
    else if (peers_.size() > 1)
      observers_.push_back(1);
    for (const int observer : observers_) {
      const Peer& peer = peers_[static_cast<std::size_t>(observer)];
      if (peer.host != own().host)
        links_.add(peer.addresses, peer.port);
      else
        observer_here_ = true;
    }
    observes_ = std::ranges::find(observers_, rank_) != observers_.end();
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
    RankView view = board_.view(local_rank);
    const Peer& peer = peers_[static_cast<std::size_t>(view.rank)];
    view.host = peer.host;
    view.gpu = peer.gpu;
    return view;
  }

  void run(const std::stop_token& stop) {
    double looked_s = now_s();
    while (!stop.stop_requested()) {
      // A job that was suspended as a whole (Slurm does) finds everybody silent when it goes on.
      const bool resumed = age(looked_s) > kPause;
      if (resumed) resumed_s_ = now_s();
      looked_s = now_s();
      board_.own().beat_s = looked_s;
      if (const int code = board_.verdict(); code != 0) {
        // The observer of this host, if there is one, is still telling the others.
        std::this_thread::sleep_for(std::chrono::milliseconds(2 * kBeatMs));
        close_log();
        exit_and_end_launcher(code, kLauncherPatience);
      }
      const bool led = leads();
      // Who takes over, or was stopped, has heard nothing lately and gives its observers time.
      if ((led && !led_) || resumed) links_.forgive();
      led_ = led;
      if (led) report();
      if (observes_) observe();
      rest();
    }
    reported_s_ = kNever;
    if (leads()) report();  // that this rank ended
  }

  // Until a message comes or it is time for the next beat.
  void rest() {
    std::vector<pollfd> fds;
    if (observes_ && listener_.fd() >= 0) fds.push_back({listener_.fd(), POLLIN, 0});
    for (const auto& connection : reports_) fds.push_back({connection.fd(), POLLIN, 0});
    poll(fds.data(), fds.size(), kBeatMs);
  }

  bool leads() {
    if (links_.empty()) return false;
    for (int i = 0; i < own().local_rank; ++i) {
      const RankView view = look_at(i);
      if (!view.ended && !view.gone && view.beat_age_s < kLeaderSilence) return false;
    }
    return true;
  }

  void report() {
    if (age(reported_s_) < kReportEvery) return;
    reported_s_ = now_s();
    std::vector<RankView> views;
    for (int i = 0; i < board_.size(); ++i) views.push_back(look_at(i));
    if (const int code = links_.exchange(report_line(token_, views)); code != 0)
      board_.verdict() = code;
    if (!observer_here_ && !links_.heard(patience_.silence_s)) give_up();
  }

  // No observer answers: this host is the one that is cut off.
  void give_up() {
    log_error("[watchdog] " + own().host + ": no word from ranks " +
              std::to_string(observers_.front()) + " and " + std::to_string(observers_.back()) +
              " for " + fixed(patience_.silence_s, 0) +
              " s: this host is cut off from them and ends its ranks");
    board_.verdict() = static_cast<int>(ExitCode::kDevice);
  }

  void take_reports() {
    while (auto connection = listener_.accept()) reports_.push_back(std::move(*connection));
    std::erase_if(reports_, [&](LineSocket& connection) {
      const auto lines = connection.receive();
      if (!lines) return true;
      for (const auto& line : *lines) {
        const auto ranks = read_report(line, token_, views_);
        if (!ranks) return true;
        for (const int rank : *ranks) heard_s_[static_cast<std::size_t>(rank)] = now_s();
        connection.send(answer_line(0));
      }
      return false;
    });
  }

  // All ranks as they are now.
  std::vector<RankView> survey() {
    for (int i = 0; i < board_.size(); ++i) {
      const RankView view = look_at(i);
      views_[static_cast<std::size_t>(view.rank)] = view;
      heard_s_[static_cast<std::size_t>(view.rank)] = now_s();
    }
    std::vector<RankView> now = views_;
    for (auto& view : now) {
      view.host_silent_s = age(heard_s_[static_cast<std::size_t>(view.rank)]);
      // Of a silent host nobody knows whether its ranks still run.
      if (view.host_silent_s < kLeaderSilence) view.beat_age_s += view.host_silent_s;
      view.operation_age_s += view.host_silent_s;
    }
    return now;
  }

  void observe() {
    take_reports();
    const auto now = survey();
    if (age(resumed_s_) < patience_.silence_s) return;
    Patience patience = patience_;
    if (launcher_ends_job()) patience.silence_s = std::min(patience.silence_s, kSilenceWhileEnding);
    const auto verdict = halt_of(now, patience);
    if (!verdict) {
      suspected_s_ = kNever;
      return;
    }
    if (suspected_s_ == kNever) suspected_s_ = now_s();
    const bool about_first =
        std::ranges::find(verdict->ranks, observers_.front()) != verdict->ranks.end();
    const bool first = rank_ == observers_.front();
    const bool first_cannot = about_first && (verdict->cause == HaltCause::kDied ||
                                              verdict->cause == HaltCause::kStopped);
    // In all else the second observer lets the first speak: it cannot tell a host that is down from
    // a link of its own that is cut.
    if (!first && !first_cannot && age(suspected_s_) < kSecondsAfterFirst) return;
    pronounce(*verdict, now);
  }

  void pronounce(const Halt& verdict, const std::vector<RankView>& views) {
    // A file system that hangs must not keep us.
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    if (!read_postmortem(options_.run_folder)) {
      PostMortem report;
      report.time = utc_time();
      report.cause = cause_name(verdict.cause);
      report.ranks = verdict.ranks;
      report.exit_code = verdict.exit_code();
      report.what = halt_text(verdict, views);
      report.checkpoint = last_checkpoint(options_.run_folder);
      report.resume = options_.resume_command;
      report.views = views;
      log_error("[watchdog] " + report.sentence());
      try {
        write_postmortem(options_.run_folder, report);
      } catch (const Error& e) {
        log_error(e.what());
      }
    }
    for (auto& connection : reports_) connection.send(answer_line(verdict.exit_code()));
    board_.verdict() = verdict.exit_code();
  }

  Options options_;
  int rank_;
  HostBoard board_;
  Patience patience_;
  LineListener listener_;
  std::vector<Peer> peers_;  // [rank]
  std::string token_;
  std::vector<int> observers_;
  bool observes_ = false, led_ = false;
  ObserverLinks links_;              // to those on other hosts
  bool observer_here_ = false;       // one of them is on this host
  std::vector<LineSocket> reports_;  // of an observer
  std::vector<RankView> views_;      // [rank], as last reported
  std::vector<double> heard_s_;      // [rank]
  double reported_s_ = kNever, suspected_s_ = kNever, resumed_s_ = kNever;
  std::jthread thread_;
};

Watchdog::Watchdog(Communicator& comm, Recorder& recorder, Options options) : recorder_(recorder) {
  if (comm.size() == 1) return;
  thread_ = std::make_unique<Thread>(comm, std::move(options));
  recorder_.set_board(thread_->board());
}

Watchdog::~Watchdog() {
  if (thread_ == nullptr) return;
  recorder_.ended();
  recorder_.set_board(nullptr);
}

}  // namespace chexnet
