// Hosts in memory with a network between them: reporters and observers as in a
// run, on a simulated clock. Hosts 0 and 1 observe the others and each other.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "bad_network.hpp"
#include "chexnet/launch/timeouts.hpp"
#include "comm/watch/observer.hpp"
#include "comm/watch/peers.hpp"
#include "comm/watch/reporter.hpp"
#include "comm/watch/transport.hpp"
#include "fake_parts.hpp"

namespace chexnet {

// Lines between hosts, each with another delay, so that they overtake each
// other.
class SimulatedNetwork {
 public:
  struct Line {
    double due_s = 0;
    uint64_t number = 0;
    LineId id;  // ends by index in `hosts`
    std::string text;
    bool operator>(const Line& other) const { return due_s > other.due_s; }
  };
  // Of reports, and of answers.
  struct Mail {
    std::priority_queue<Line, std::vector<Line>, std::greater<>> under_way;
    std::vector<std::vector<Line>> boxes;  // [receiver]
    // [the host that is not the observer][observer]
    std::vector<std::array<uint64_t, 2>> newest;
    std::vector<std::array<double, 2>> delivered_s;
  };

  // `hosts`: the numbers by which the forecast knows them. Every host counts as
  // heard at the start.
  SimulatedNetwork(const Forecast& forecast, std::vector<int> hosts,
                   int64_t tick)
      : down(hosts.size()),
        forecast_(forecast),
        hosts_(std::move(hosts)),
        tick_(tick) {
    for (Mail* mail : {&reports, &answers}) {
      mail->boxes.resize(hosts_.size());
      mail->newest.resize(hosts_.size());
      mail->delivered_s.resize(hosts_.size(), {now_s(), now_s()});
    }
  }

  double now_s() const { return seconds(tick_); }
  int64_t tick() const { return tick_; }
  void set_tick(int64_t tick) { tick_ = tick; }

  void send(const LineId& line, const std::string& text) {
    ++sent;
    const auto number = [&](int place) {
      return hosts_[static_cast<size_t>(place)];
    };
    const auto is_out = [&](int place) {
      return down[static_cast<size_t>(place)] ||
             forecast_.is_out(number(place), now_s(), now_s());
    };
    const auto delay_s = forecast_.delay_s(
        {line.kind, number(line.from), number(line.to), line.tick});
    if (!delay_s || is_out(line.from) || is_out(line.to)) {
      ++lost;
      return;
    }
    Mail& mail = line.kind == LineKind::kReport ? reports : answers;
    mail.under_way.push({now_s() + *delay_s, sent, line, text});
  }
  void deliver() {
    for (Mail* mail : {&reports, &answers})
      for (auto& lines = mail->under_way;
           !lines.empty() && lines.top().due_s <= now_s(); lines.pop())
        put(*mail, lines.top());
  }

  Mail reports, answers;
  std::vector<bool> down;  // [host]
  uint64_t sent = 0, delivered = 0, lost = 0, overtaken = 0;

 private:
  void put(Mail& mail, const Line& line) {
    const bool is_report = &mail == &reports;
    const auto host =
        static_cast<size_t>(is_report ? line.id.from : line.id.to);
    const auto observer =
        static_cast<size_t>(is_report ? line.id.to : line.id.from);
    ++delivered;
    uint64_t& newest = mail.newest[host][observer];
    overtaken += line.number < newest ? 1 : 0;
    newest = std::max(newest, line.number);
    mail.delivered_s[host][observer] = now_s();
    mail.boxes[static_cast<size_t>(line.id.to)].push_back(line);
  }

  const Forecast& forecast_;
  std::vector<int> hosts_;
  int64_t tick_;
};

// Of one host to the observers on others.
class SimulatedChannel final : public ReportChannel {
 public:
  SimulatedChannel(SimulatedNetwork& network, int host,
                   std::vector<int> observers)
      : network_(network), host_(host), to_(std::move(observers)) {}
  size_t observers() const override { return to_.size(); }
  std::vector<std::string> exchange(size_t observer,
                                    const std::string& report) override {
    const int to = to_.at(observer);
    network_.send({LineKind::kReport, host_, to, network_.tick()}, report);
    auto& box = network_.answers.boxes[static_cast<size_t>(host_)];
    std::vector<std::string> answers;
    for (const auto& line : box)
      if (line.id.from == to) answers.push_back(line.text);
    std::erase_if(box, [&](const auto& line) { return line.id.from == to; });
    return answers;
  }
  void reconnect(size_t) override {}

 private:
  SimulatedNetwork& network_;
  int host_;
  std::vector<int> to_;
};

// Of one observer.
class SimulatedInbox final : public ReportInbox {
 public:
  SimulatedInbox(SimulatedNetwork& network, int host, int hosts)
      : network_(network), host_(host), hosts_(hosts) {}
  void take(double, const Use& use) override {
    auto& box = network_.reports.boxes[static_cast<size_t>(host_)];
    for (const auto& line : box) {
      const std::string answer = use(line.text);
      if (!answer.empty())
        network_.send({LineKind::kAnswer, host_, line.id.from, line.id.tick},
                      answer);
    }
    box.clear();
  }
  void tell_all(const std::string& line) override {
    for (int to = 0; to < hosts_; ++to)
      if (to != host_)
        network_.send({LineKind::kEnd, host_, to, network_.tick()}, line);
  }

 private:
  SimulatedNetwork& network_;
  int host_, hosts_;
};

// Why a run ended, and whether that was so.
struct Verdict {
  double at_s = 0;
  std::vector<int> hosts;  // by their numbers
  double silent_s = 0;  // the least of them: no line was delivered for so long
};

// Hosts with one rank each that train in step: each computes for a while and
// waits for the slowest one.
class SimulatedCluster {
 public:
  // `hosts` by their numbers in the forecast; the first two observe.
  SimulatedCluster(const Forecast& forecast, std::vector<int> hosts,
                   double silence_s, int64_t tick = 0)
      : network(forecast, hosts, tick),
        now(network.now_s()),
        numbers_(std::move(hosts)),
        random_(static_cast<uint64_t>(tick) + 1) {
    std::vector<RankView> names(numbers_.size());
    for (size_t h = 0; h < names.size(); ++h) {
      names[h].rank = static_cast<int>(h);
      names[h].host = "node" + std::to_string(numbers_[h]);
    }
    for (int h = 0; h < static_cast<int>(names.size()); ++h)
      hosts_.push_back(std::make_unique<Host>(*this, h, silence_s, names));
  }
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  void run_for(double seconds) {
    const double end = now + seconds;
    while (now < end) tick();
  }
  // Until an observer, or a host that ends itself, says why the run ends.
  std::optional<Verdict> run_until_explained(double end_s) {
    while (now < end_s) {
      tick();
      if (!folder.sentences.empty()) return observers_verdict();
      if (!folder.log.empty()) return verdict_of_a_host();
    }
    return std::nullopt;
  }
  // The host loses its power.
  void kill(int host) {
    network.down[static_cast<size_t>(host)] = true;
    hosts_[static_cast<size_t>(host)]->is_killed = true;
  }
  // All but the observers end in order within a second; these have work left.
  void end_all_but_observers() {
    for (size_t h = 2; h < hosts_.size(); ++h)
      hosts_[h]->ends_at_s =
          now + std::uniform_real_distribution<>(0, 1)(random_);
  }
  int ended() const {
    return static_cast<int>(std::ranges::count_if(
        hosts_, [](const auto& h) { return h->end.exit_code.has_value(); }));
  }

  SimulatedNetwork network;
  double now;
  FakeRunFolder folder;
  double longest_silence_s = 0;  // of a host, for an observer elsewhere

 private:
  struct Host {
    Host(SimulatedCluster& cluster, int place, double silence_s,
         const std::vector<RankView>& names)
        : end(cluster.folder, place, cluster.now) {
      auto& rank = memory.ranks.emplace_back();
      rank.rank = place;
      rank.heartbeat_s = rank.since_s = cluster.now;
      ranks = std::make_unique<FakeHostRanks>(memory, 0, cluster.now);

      const std::vector<int> observers = {0, 1};
      std::vector<int> elsewhere = observers;
      std::erase(elsewhere, place);
      channel =
          std::make_unique<SimulatedChannel>(cluster.network, place, elsewhere);
      const SteadyClock clock = [&cluster] { return cluster.now; };
      reporter = std::make_unique<Reporter>(
          Reporter::Options{
              .host = names[static_cast<size_t>(place)].host,
              .observers = observers,
              .observer_here = elsewhere.size() < observers.size(),
              .silence_s = silence_s,
              .answer_token = kRunTokens.answer},
          *ranks, *channel, end, clock);
      if (elsewhere.size() == observers.size()) return;
      inbox = std::make_unique<SimulatedInbox>(cluster.network, place,
                                               static_cast<int>(names.size()));
      observer = std::make_unique<Observer>(
          Observer::Options{.rank = place,
                            .observers = observers,
                            .timeouts = {2 * silence_s, silence_s},
                            .answer_token = kRunTokens.answer},
          names, *ranks, inbox.get(), end, clock);
    }

    FakeHost memory;
    FakeEnd end;
    std::unique_ptr<FakeHostRanks> ranks;
    std::unique_ptr<SimulatedChannel> channel;
    std::unique_ptr<SimulatedInbox> inbox;
    std::unique_ptr<Reporter> reporter;
    std::unique_ptr<Observer> observer;
    bool is_killed = false;
    double ends_at_s = 1e9;
    double computes_until_s = 0;
  };

  void tick() {
    train();
    network.deliver();
    for (auto& host : hosts_) {
      if (host->is_killed || host->end.exit_code) continue;
      if (now >= host->ends_at_s) {
        host->memory.ranks.front().phase = Phase::kEnded;
        host->reporter->say_goodbye();
        host->is_killed = true;
        continue;
      }
      host->reporter->heartbeat(false);
      if (host->observer) host->observer->look(false);
    }
    note_silence();
    network.set_tick(network.tick() + 1);
    now = network.now_s();
  }

  void note_silence() {
    for (size_t h = 0; h < hosts_.size(); ++h)
      for (size_t observer = 0; observer < 2; ++observer)
        if (h != observer)
          longest_silence_s =
              std::max(longest_silence_s,
                       now - network.reports.delivered_s[h][observer]);
  }

  // A step takes each rank 0.2 to 1 s, and ends when all wait.
  void train() {
    bool all_wait = true;
    for (auto& host : hosts_) {
      auto& rank = host->memory.ranks.front();
      if (!host->is_killed && rank.phase == Phase::kBackward &&
          now >= host->computes_until_s) {
        rank.phase = Phase::kAllReduceWait;
        rank.since_s = now;
      }
      all_wait = all_wait && rank.phase == Phase::kAllReduceWait;
    }
    if (!all_wait) return;
    std::uniform_real_distribution<> length(0.2, 1);
    for (auto& host : hosts_) {
      auto& rank = host->memory.ranks.front();
      rank.phase = Phase::kBackward;
      rank.since_s = now;
      ++rank.sequence;
      ++rank.step;
      host->computes_until_s = now + length(random_);
    }
  }

  Verdict observers_verdict() const {
    Verdict verdict{folder.explained_s, {}, folder.explained_s};
    for (const int place : folder.named) {
      const auto& heard_s =
          network.reports.delivered_s[static_cast<size_t>(place)];
      verdict.hosts.push_back(numbers_[static_cast<size_t>(place)]);
      verdict.silent_s =
          std::min(verdict.silent_s,
                   folder.explained_s -
                       heard_s[static_cast<size_t>(folder.explained_by)]);
    }
    return verdict;
  }
  Verdict verdict_of_a_host() const {
    const double at_s = now - kTick_s;
    Verdict verdict{at_s, {}, at_s};
    for (size_t h = 0; h < hosts_.size(); ++h) {
      if (hosts_[h]->memory.end_code == 0) continue;
      const auto& heard_s = network.answers.delivered_s[h];
      verdict.hosts.push_back(numbers_[h]);
      verdict.silent_s =
          std::min(verdict.silent_s, at_s - std::ranges::max(heard_s));
    }
    return verdict;
  }

  std::vector<int> numbers_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

inline std::vector<int> all_hosts(int count) {
  std::vector<int> hosts(static_cast<size_t>(count));
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

}  // namespace chexnet
