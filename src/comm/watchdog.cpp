#include "chexnet/comm/watchdog.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
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
#include "line_socket.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

constexpr int kBeatMs = 50;
constexpr double kReportEvery = 0.25, kConnectEvery = 1;
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
    seen_.assign(static_cast<std::size_t>(board_.size()), 0);
    // Beats begin on all ranks before anyone judges.
    comm.barrier();
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }
  ~Thread() { thread_ = {}; }
  OperationBoard* board() { return &board_.own().operation; }

 private:
  // An observer this host reports to over the network.
  struct Link {
    int rank;
    std::optional<LineSocket> socket;
    double tried_s = kNever, answered_s = 0;
    std::size_t attempts = 0;
  };

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
    for (const int observer : observers_)
      if (peers_[static_cast<std::size_t>(observer)].host != own().host)
        links_.push_back({observer, std::nullopt, kNever, now_s(), 0});
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
  RankView look_at(int local_rank) const {
    const HostBoard::Slot& slot = board_.slot(local_rank);
    RankView view = first_view(slot.rank);
    view.pid = slot.pid;
    view.operation = static_cast<Operation>(slot.operation.operation.load());
    view.ended = view.operation == Operation::kEnded;
    // Where ranks live in containers of their own, their process numbers mean nothing here.
    char& seen = seen_[static_cast<std::size_t>(local_rank)];
    const bool there = kill(view.pid, 0) == 0 || errno != ESRCH;
    seen |= there ? 1 : 0;
    view.gone = !view.ended && seen && !there;
    view.beat_age_s = age(slot.beat_s);
    view.operation_age_s = age(slot.operation.since_s);
    view.sequence = slot.operation.sequence;
    view.step = slot.operation.step;
    return view;
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      board_.own().beat_s = now_s();
      if (const int code = board_.verdict(); code != 0) {
        // The observer of this host, if there is one, is still telling the others.
        std::this_thread::sleep_for(std::chrono::milliseconds(2 * kBeatMs));
        close_log();
        exit_and_end_launcher(code, kLauncherPatience);
      }
      const bool led = leads();
      // A rank that takes over has heard nothing yet, and gives its observers time.
      if (led && !led_)
        for (auto& link : links_) link.answered_s = now_s();
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

  bool leads() const {
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
    json message = {{"token", token_}, {"ranks", json::array()}};
    for (int i = 0; i < board_.size(); ++i) {
      const RankView v = look_at(i);
      message["ranks"].push_back({v.rank, v.pid, static_cast<int>(v.operation), v.gone,
                                  v.beat_age_s, v.operation_age_s, v.sequence, v.step});
    }
    const std::string line = message.dump();
    bool heard = links_.size() < observers_.size();  // an observer lives on this host
    for (auto& link : links_) {
      const Peer& observer = peers_[static_cast<std::size_t>(link.rank)];
      if (!link.socket && age(link.tried_s) > kConnectEvery) {
        link.socket = LineSocket::connect(observer.addresses, observer.port, link.attempts++);
        link.tried_s = now_s();
      }
      if (!link.socket) continue;
      const auto answers = link.socket->receive();
      if (!answers || !link.socket->send(line)) {
        link.socket.reset();
        continue;
      }
      for (const auto& answer : *answers) {
        const auto reply = json::parse(answer, nullptr, false);
        if (reply.is_discarded()) continue;
        link.answered_s = now_s();
        if (const int code = reply.value("verdict", 0); code != 0) board_.verdict() = code;
      }
      // Another way to the observer, when this one never answers.
      if (age(link.answered_s) > 2 * kConnectEvery && age(link.tried_s) > 2 * kConnectEvery)
        link.socket.reset();
    }
    for (const auto& link : links_) heard = heard || age(link.answered_s) < patience_.silence_s;
    if (!heard) give_up();
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
        if (!take_report(line)) return true;
        connection.send(json({{"verdict", 0}}).dump());
      }
      return false;
    });
  }

  // False for what no rank of this run sent.
  bool take_report(const std::string& line) {
    try {
      const auto message = json::parse(line);
      if (message.at("token") != token_) return false;
      for (const auto& r : message.at("ranks")) {
        RankView& view = views_.at(r.at(0).get<std::size_t>());
        view.pid = r.at(1);
        view.operation = static_cast<Operation>(r.at(2).get<int>());
        view.ended = view.operation == Operation::kEnded;
        view.gone = r.at(3);
        view.beat_age_s = r.at(4);
        view.operation_age_s = r.at(5);
        view.sequence = r.at(6);
        view.step = r.at(7);
        heard_s_[static_cast<std::size_t>(view.rank)] = now_s();
      }
      return true;
    } catch (const std::exception&) {
      return false;
    }
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
    Patience patience = patience_;
    if (launcher_ends_job()) patience.silence_s = std::min(patience.silence_s, kSilenceWhileEnding);
    const auto verdict = judge(now, patience);
    if (!verdict) {
      suspected_s_ = kNever;
      return;
    }
    if (suspected_s_ == kNever) suspected_s_ = now_s();
    const bool about_first =
        std::ranges::find(verdict->ranks, observers_.front()) != verdict->ranks.end();
    const bool first = rank_ == observers_.front();
    const bool first_cannot =
        about_first && (verdict->cause == Cause::kDied || verdict->cause == Cause::kStopped);
    // In all else the second observer lets the first speak: it cannot tell a host that is down from
    // a link of its own that is cut.
    if (!first && !first_cannot && age(suspected_s_) < kSecondsAfterFirst) return;
    pronounce(*verdict, now);
  }

  void pronounce(const Verdict& verdict, const std::vector<RankView>& views) {
    // A file system that hangs must not keep us.
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    if (!read_postmortem(options_.run_folder)) {
      PostMortem report;
      report.time = utc_time();
      report.cause = cause_name(verdict.cause);
      report.ranks = verdict.ranks;
      report.exit_code = verdict.exit_code();
      report.what = verdict_text(verdict, views);
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
    const std::string order = json({{"verdict", verdict.exit_code()}}).dump();
    for (auto& connection : reports_) connection.send(order);
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
  std::vector<Link> links_;          // of a rank that reports
  std::vector<LineSocket> reports_;  // of an observer
  std::vector<RankView> views_;      // [rank], as last reported
  mutable std::vector<char> seen_;   // [local rank], its process once existed
  std::vector<double> heard_s_;      // [rank]
  double reported_s_ = kNever, suspected_s_ = kNever;
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
