// A cluster in memory: hosts of ranks, each with its watchdog's parts, a
// network between them and a clock, all of which a test can disturb.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/launch/timeouts.hpp"
#include "comm/watch/observer.hpp"
#include "comm/watch/peers.hpp"
#include "comm/watch/reporter.hpp"
#include "comm/watch/transport.hpp"
#include "fake_parts.hpp"

namespace chexnet {

// Lines between the ranks that report and the observers, in order and one copy
// each, until a test says otherwise.
class FakeNetwork {
 public:
  explicit FakeNetwork(const double& now) : now_(now) {}

  // Of one reporter to `observers` (ranks).
  class Channel final : public ReportChannel {
   public:
    Channel(FakeNetwork& network, int rank, std::vector<int> observers)
        : network_(network), rank_(rank), to_(std::move(observers)) {}
    size_t observers() const override { return to_.size(); }
    std::vector<std::string> exchange(size_t observer,
                                      const std::string& report) override {
      const int to = to_.at(observer);
      network_.send(network_.reports_[{rank_, to}], rank_, to, report);
      return network_.due(network_.answers_[{rank_, to}]);
    }
    void reconnect(size_t) override { ++reconnects; }
    int reconnects = 0;

   private:
    FakeNetwork& network_;
    int rank_;
    std::vector<int> to_;
  };

  // Of one observer.
  class Inbox final : public ReportInbox {
   public:
    Inbox(FakeNetwork& network, int rank) : network_(network), rank_(rank) {}
    void take(double, const Use& use) override {
      for (auto& [way, lines] : network_.reports_) {
        if (way.second != rank_) continue;
        for (const auto& line : network_.due(lines)) {
          const std::string answer = use(line);
          if (answer.empty()) continue;
          network_.send(network_.answers_[way], rank_, way.first, answer);
        }
      }
    }
    void tell_all(const std::string& line) override {
      for (auto& [way, lines] : network_.reports_)
        if (way.second == rank_)
          network_.send(network_.answers_[way], rank_, way.first, line);
    }

   private:
    FakeNetwork& network_;
    int rank_;
  };

  // Lines from and to these ranks are lost.
  std::set<int> cut;
  double delay_s = 0;
  int copies = 1;
  unsigned lost_percent = 0;

 private:
  struct Line {
    double due_s;
    std::string text;
  };
  void send(std::deque<Line>& queue, int from, int to,
            const std::string& text) {
    if (cut.contains(from) || cut.contains(to)) return;
    // As good as by chance, and the same each time: Knuth's multiplicative hash
    // of the count.
    if ((++sent_ * 2654435761U >> 16) % 100 < lost_percent) return;
    for (int i = 0; i < copies; ++i) queue.push_back({now_ + delay_s, text});
  }
  std::vector<std::string> due(std::deque<Line>& queue) const {
    std::vector<std::string> lines;
    for (; !queue.empty() && queue.front().due_s <= now_; queue.pop_front())
      lines.push_back(queue.front().text);
    return lines;
  }
  const double& now_;
  std::map<std::pair<int, int>, std::deque<Line>> reports_,
      answers_;  // {reporter, observer}
  unsigned sent_ = 0;
};

// All of it: hosts "a", "b", … with so many ranks each, every one with its
// watchdog's two parts, driven as the watchdog's thread drives them.
class FakeCluster {
 public:
  static constexpr double kTimeout_s = 5;
  static constexpr double kHeartbeat_s = 0.05;

  explicit FakeCluster(const std::vector<int>& ranks_of_hosts) : network(now) {
    std::vector<Peer> peers;
    for (size_t h = 0; h < ranks_of_hosts.size(); ++h) {
      auto& host = *hosts.emplace_back(std::make_unique<FakeHost>());
      host.name = std::string(1, static_cast<char>('a' + h));
      for (int local = 0; local < ranks_of_hosts[h]; ++local) {
        auto& rank = host.ranks.emplace_back();
        rank.rank = static_cast<int>(peers.size());
        rank.heartbeat_s = rank.since_s = now;
        peers.push_back({host.name, "", local, {}});
      }
    }
    const auto observers = choose_observers(peers);
    for (int rank = 0; rank < static_cast<int>(peers.size()); ++rank)
      processes.push_back(
          std::make_unique<Process>(*this, peers, observers, rank));
  }

  struct Process {
    Process(FakeCluster& cluster, const std::vector<Peer>& peers,
            const std::vector<int>& observers, int rank)
        : now(cluster.now),
          end(cluster.folder, rank, cluster.now),
          suspension(cluster.now) {
      const Peer& own = peers[static_cast<size_t>(rank)];
      host = cluster.hosts[static_cast<size_t>(own.host[0] - 'a')].get();
      ranks =
          std::make_unique<FakeHostRanks>(*host, own.local_rank, cluster.now);
      bool observer_here = false;
      std::vector<int> elsewhere;
      for (const int observer : observers)
        if (peers[static_cast<size_t>(observer)].host == own.host)
          observer_here = true;
        else
          elsewhere.push_back(observer);
      channel = std::make_unique<FakeNetwork::Channel>(cluster.network, rank,
                                                       elsewhere);
      const SteadyClock clock = [this] { return now; };
      const WatchTimeouts timeouts{kTimeout_s + kWatchdogAfter_s, kTimeout_s};
      reporter = std::make_unique<Reporter>(
          Reporter::Options{.host = own.host,
                            .local_rank = own.local_rank,
                            .observers = observers,
                            .observer_here = observer_here,
                            .silence_s = kTimeout_s,
                            .answer_token = kRunTokens.answer},
          *ranks, *channel, end, clock);
      if (std::ranges::find(observers, rank) == observers.end()) return;
      inbox = std::make_unique<FakeNetwork::Inbox>(cluster.network, rank);
      std::vector<RankView> names;
      for (size_t r = 0; r < peers.size(); ++r) {
        names.emplace_back().rank = static_cast<int>(r);
        names.back().host = peers[r].host;
      }
      observer = std::make_unique<Observer>(
          Observer::Options{.rank = rank,
                            .observers = observers,
                            .timeouts = timeouts,
                            .answer_token = kRunTokens.answer},
          names, *ranks, inbox.get(), end, clock);
    }
    bool runs() const { return !stopped && !killed && !end.exit_code; }
    void step() {
      const bool resumed = suspension.look(now) > 0;
      reporter->heartbeat(resumed);
      if (observer && !end.exit_code) observer->look(resumed);
    }

    const double& now;
    FakeHost* host = nullptr;
    FakeEnd end;
    SuspensionMeter suspension;
    std::unique_ptr<FakeHostRanks> ranks;
    std::unique_ptr<FakeNetwork::Channel> channel;
    std::unique_ptr<FakeNetwork::Inbox> inbox;
    std::unique_ptr<Reporter> reporter;
    std::unique_ptr<Observer> observer;  // of an observer
    bool stopped = false, killed = false;
  };

  // Time passes; processes that run do what their watchdogs do, and move on
  // where they wait for no other rank.
  void run_for(double seconds) {
    for (const double end = now + seconds; now < end; now += kHeartbeat_s)
      for (size_t r = 0; r < processes.size(); ++r) {
        if (!processes[r]->runs()) continue;
        FakeHost::Rank& own = rank(static_cast<int>(r));
        if (!own.still && !is_collective(own.phase)) own.since_s = now;
        processes[r]->step();
      }
  }
  // Until somebody explains; the seconds that took, or -1 when nobody did.
  double run_until_explained(double at_most_s) {
    const double start = now;
    while (folder.sentences.empty() && now - start < at_most_s)
      run_for(kHeartbeat_s);
    return folder.sentences.empty() ? -1 : folder.explained_s - start;
  }

  Process& process(int rank) {
    return *processes.at(static_cast<size_t>(rank));
  }
  FakeHost::Rank& rank(int rank) {
    for (auto& host : hosts)
      for (auto& r : host->ranks)
        if (r.rank == rank) return r;
    throw std::out_of_range("rank");
  }
  void stop(int rank) { process(rank).stopped = true; }  // SIGSTOP
  void go_on(int rank) { process(rank).stopped = false; }
  void kill(int rank) {
    process(rank).killed = true;
    this->rank(rank).gone = true;
  }
  void wait_in_all_reduce(const std::set<int>& ranks) {
    for (const int r : ranks) {
      rank(r).phase = Phase::kAllReduceWait;
      rank(r).since_s = now;
    }
  }
  // Exit codes in order of rank: "5 5 - 7"; "-" runs still.
  std::string exit_codes() const {
    std::string text;
    for (const auto& process : processes)
      text += (text.empty() ? "" : " ") +
              (process->end.exit_code ? std::to_string(*process->end.exit_code)
                                      : "-");
    return text;
  }

  double now = 1000;
  FakeNetwork network;
  FakeRunFolder folder;
  std::vector<std::unique_ptr<FakeHost>> hosts;
  std::vector<std::unique_ptr<Process>> processes;  // [rank]
};

}  // namespace chexnet
