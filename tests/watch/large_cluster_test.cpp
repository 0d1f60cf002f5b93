// A thousand hosts in memory: reporters and observers as in a run, over a
// network whose lines come late, out of order or not at all. By default some
// simulated seconds; with CHEXNET_LONG=1 as many as CHEXNET_SIMULATED_S says,
// CHEXNET_STORM_SEED chooses another weather, and with $CHEXNET_FIGURES a line
// of JSON of each test.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "chexnet/comm/timeouts.hpp"
#include "fake_parts.hpp"
#include "support/catch.hpp"
#include "watch/observer.hpp"
#include "watch/peers.hpp"
#include "watch/reporter.hpp"
#include "watch/transport.hpp"

using namespace chexnet;

namespace {

constexpr double kHeartbeat_s = 0.05;

bool is_long() { return std::getenv("CHEXNET_LONG") != nullptr; }

// What the network does to lines. Times in seconds.
struct Weather {
  double usual_delay_s = 0.02;   // mean; exponential
  double slow_share = 0.01;      // of the lines
  double slow_delay_s = 5;       // at most, of these; uniform
  double lost_share = 0.1;       // of the lines
  double outage_every_s = 600;   // mean, of a host
  double longest_outage_s = 30;  // uniform
};

// Lines between hosts, each with a delay of its own, so that they overtake each
// other. A host without a network loses all from and to it.
class Network {
 public:
  Network(const double& now, Weather weather, size_t hosts, uint64_t seed)
      : now_(now), weather_(weather), random_(seed), outages_(hosts) {
    for (auto& outage : outages_) draw_outage(outage, now);
  }

  void send_report(int from, int to, const std::string& text) {
    send(from, to, text, reports_);
  }
  void send_answer(int from, int to, const std::string& text) {
    send(from, to, text, answers_);
  }

  // Hands over what is due: reports by `inboxes_` [host], answers likewise.
  void deliver() {
    move_due(reports_, report_boxes);
    move_due(answers_, answer_boxes);
  }

  struct Line {
    double due_s = 0;
    uint64_t number = 0;
    int from = 0, to = 0;
    std::string text;
    bool operator>(const Line& other) const { return due_s > other.due_s; }
  };
  std::vector<std::vector<Line>> report_boxes, answer_boxes;  // [host]
  std::vector<bool> down;                                     // [host]
  uint64_t sent = 0, delivered = 0, lost = 0, overtaken = 0, outages = 0;

 private:
  using Queue = std::priority_queue<Line, std::vector<Line>, std::greater<>>;
  struct Outage {
    double begin_s = 0, end_s = 0;
  };

  double uniform(double most) {
    return std::uniform_real_distribution<>(0, most)(random_);
  }
  double exponential(double mean) {
    return std::exponential_distribution<>(1 / mean)(random_);
  }
  void draw_outage(Outage& outage, double after) {
    outage.begin_s = after + exponential(weather_.outage_every_s);
    outage.end_s = outage.begin_s + uniform(weather_.longest_outage_s);
  }
  bool is_out(int host) {
    auto& outage = outages_[static_cast<size_t>(host)];
    for (; outage.end_s < now_; ++outages) draw_outage(outage, outage.end_s);
    return down[static_cast<size_t>(host)] || now_ >= outage.begin_s;
  }

  void send(int from, int to, const std::string& text, Queue& queue) {
    ++sent;
    if (is_out(from) || is_out(to) || uniform(1) < weather_.lost_share) {
      ++lost;
      return;
    }
    const double delay = uniform(1) < weather_.slow_share
                             ? uniform(weather_.slow_delay_s)
                             : exponential(weather_.usual_delay_s);
    queue.push({now_ + delay, sent, from, to, text});
  }
  void move_due(Queue& queue, std::vector<std::vector<Line>>& boxes) {
    for (; !queue.empty() && queue.top().due_s <= now_; queue.pop()) {
      ++delivered;
      const Line& line = queue.top();
      uint64_t& newest = newest_[{line.from, line.to}];
      overtaken += line.number < newest ? 1 : 0;
      newest = std::max(newest, line.number);
      boxes[static_cast<size_t>(queue.top().to)].push_back(queue.top());
    }
  }

  const double& now_;
  Weather weather_;
  std::mt19937_64 random_;
  std::vector<Outage> outages_;  // [host], the present or next one
  Queue reports_, answers_;
  std::map<std::pair<int, int>, uint64_t> newest_;  // {from, to}, delivered
};

// Of one host to the observers on others.
class Channel final : public ReportChannel {
 public:
  Channel(Network& network, int host, std::vector<int> observers)
      : network_(network), host_(host), to_(std::move(observers)) {}
  size_t observers() const override { return to_.size(); }
  std::vector<std::string> exchange(size_t observer,
                                    const std::string& report) override {
    const int to = to_.at(observer);
    network_.send_report(host_, to, report);
    auto& box = network_.answer_boxes[static_cast<size_t>(host_)];
    std::vector<std::string> answers;
    for (const auto& line : box)
      if (line.from == to) answers.push_back(line.text);
    std::erase_if(box, [&](const auto& line) { return line.from == to; });
    return answers;
  }
  void reconnect(size_t) override {}

 private:
  Network& network_;
  int host_;
  std::vector<int> to_;
};

// Of one observer.
class Inbox final : public ReportInbox {
 public:
  Inbox(Network& network, int host, int hosts)
      : network_(network), host_(host), hosts_(hosts) {}
  void take(double, const Use& use) override {
    auto& box = network_.report_boxes[static_cast<size_t>(host_)];
    for (const auto& line : box) {
      const std::string answer = use(line.text);
      if (!answer.empty()) network_.send_answer(host_, line.from, answer);
    }
    box.clear();
  }
  void tell_all(const std::string& line) override {
    for (int to = 0; to < hosts_; ++to)
      if (to != host_) network_.send_answer(host_, to, line);
  }

 private:
  Network& network_;
  int host_, hosts_;
};

// Hosts with one rank each that train in step: each computes for a while and
// waits for the slowest one.
class LargeCluster {
 public:
  LargeCluster(int hosts, double silence_s, Weather weather, uint64_t seed)
      : network(now, weather, static_cast<size_t>(hosts), seed),
        random_(seed + 1) {
    const auto count = static_cast<size_t>(hosts);
    network.report_boxes.resize(count);
    network.answer_boxes.resize(count);
    network.down.resize(count);
    std::vector<RankView> names(count);
    for (size_t h = 0; h < count; ++h) {
      names[h].rank = static_cast<int>(h);
      names[h].host = "node" + std::to_string(h);
    }
    for (int h = 0; h < hosts; ++h)
      hosts_.push_back(
          std::make_unique<Host>(*this, h, hosts, silence_s, names));
  }

  void run_for(double seconds) {
    const double end = now + seconds;
    while (now < end) tick();
  }
  // Seconds until somebody said why the run ends, or -1.
  double run_until_explained(double at_most_s) {
    const double begin = now;
    while (folder.sentences.empty() && now - begin < at_most_s) tick();
    return folder.sentences.empty() ? -1 : folder.explained_s - begin;
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

  double now = 1000;
  Network network;
  FakeRunFolder folder;

 private:
  struct Host {
    Host(LargeCluster& cluster, int number, int hosts, double silence_s,
         const std::vector<RankView>& names)
        : end(cluster.folder, number, cluster.now) {
      auto& rank = memory.ranks.emplace_back();
      rank.rank = number;
      rank.heartbeat_s = rank.since_s = cluster.now;
      ranks = std::make_unique<FakeHostRanks>(memory, 0, cluster.now);

      const std::vector<int> observers = {0, 1};
      std::vector<int> elsewhere = observers;
      std::erase(elsewhere, number);
      channel = std::make_unique<Channel>(cluster.network, number, elsewhere);
      const SteadyClock clock = [&cluster] { return cluster.now; };
      reporter = std::make_unique<Reporter>(
          Reporter::Options{
              .host = names[static_cast<size_t>(number)].host,
              .observers = observers,
              .observer_here = elsewhere.size() < observers.size(),
              .silence_s = silence_s,
              .answer_token = kRunTokens.answer},
          *ranks, *channel, end, clock);
      if (elsewhere.size() == observers.size()) return;
      inbox = std::make_unique<Inbox>(cluster.network, number, hosts);
      observer = std::make_unique<Observer>(
          Observer::Options{.rank = number,
                            .observers = observers,
                            .timeouts = {2 * silence_s, silence_s},
                            .answer_token = kRunTokens.answer},
          names, *ranks, inbox.get(), end, clock);
    }

    FakeHost memory;
    FakeEnd end;
    std::unique_ptr<FakeHostRanks> ranks;
    std::unique_ptr<Channel> channel;
    std::unique_ptr<Inbox> inbox;
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
    now += kHeartbeat_s;
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

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

void write_figures(const nlohmann::json& figures) {
  const char* file = std::getenv("CHEXNET_FIGURES");
  if (file != nullptr) std::ofstream(file, std::ios::app) << figures << "\n";
}

}  // namespace

TEST_CASE("a thousand hosts with a bad network are left alone",
          "[arithmetic]") {
  constexpr int kHosts = 1024;
  const Weather mild{
      .slow_delay_s = 1, .outage_every_s = 60, .longest_outage_s = 2};
  double simulated_s = 20, silence_s = 5;
  Weather weather = mild;
  uint64_t seed = 1;
  if (is_long()) {
    const char* drawn_by = std::getenv("CHEXNET_STORM_SEED");
    if (drawn_by != nullptr) seed = std::strtoull(drawn_by, nullptr, 10);
    const char* asked = std::getenv("CHEXNET_SIMULATED_S");
    simulated_s = asked == nullptr ? 3600 : std::atof(asked);
    silence_s = 60;
    // Many outages, as they are what silence is made of, and short ones: a
    // line needs both of its hosts, whose outages may follow each other.
    weather = {.outage_every_s = 60, .longest_outage_s = 5};
  }
  LargeCluster cluster(kHosts, silence_s, weather, seed);
  cluster.run_for(simulated_s);
  CHECK(cluster.folder.sentences == std::vector<std::string>());
  CHECK(cluster.folder.log == std::vector<std::string>());
  CHECK(cluster.ended() == 0);
  // All of it was tried.
  CHECK(cluster.network.lost > cluster.network.sent / 20);
  CHECK(cluster.network.delivered > cluster.network.sent / 2);
  write_figures(
      {{"test", "left alone"},
       {"hosts", kHosts},
       {"seed", seed},
       {"simulated_s", simulated_s},
       {"outages", cluster.network.outages},
       {"silence_s", silence_s},
       {"overtaken", cluster.network.overtaken},
       {"sent", cluster.network.sent},
       {"sent_per_s", static_cast<double>(cluster.network.sent) / simulated_s},
       {"delivered", cluster.network.delivered},
       {"lost", cluster.network.lost},
       {"false_verdicts", cluster.folder.sentences.size()},
       {"hosts_that_ended_themselves", cluster.ended()}});
}

TEST_CASE("hosts that end are no failure, though lines overtake a goodbye") {
  // Nothing is lost: a goodbye is said once.
  const Weather late{.slow_share = 0.2,
                     .slow_delay_s = 1,
                     .lost_share = 0,
                     .outage_every_s = 1e9};
  LargeCluster cluster(200, 5, late, 3);
  cluster.run_for(2);
  cluster.end_all_but_observers();
  cluster.run_for(9);
  CHECK(cluster.folder.sentences.empty());
  CHECK(cluster.ended() == 0);
  CHECK(cluster.network.overtaken > 0);
}

TEST_CASE("a dead host among a thousand is named, and it alone",
          "[arithmetic]") {
  constexpr int kHosts = 1024;
  constexpr double kSilence_s = 5;
  // What the others report must come within that silence.
  const Weather weather{.slow_delay_s = 1, .longest_outage_s = 2};
  const int deaths = is_long() ? 20 : 1;
  std::mt19937_64 random(2);
  std::vector<double> seconds;
  for (int i = 0; i < deaths; ++i) {
    LargeCluster cluster(kHosts, kSilence_s, weather,
                         100 + static_cast<uint64_t>(i));
    // Between two reports.
    cluster.run_for(2 + std::uniform_real_distribution<>(0, 1)(random));
    const int victim = std::uniform_int_distribution<>(0, kHosts - 1)(random);
    CAPTURE(i, victim);
    cluster.kill(victim);
    seconds.push_back(cluster.run_until_explained(30));
    REQUIRE(cluster.folder.sentences.size() == 1);
    CHECK(cluster.folder.causes.front() == "cut off");
    CHECK(cluster.folder.sentences.front().find(
              "Host node" + std::to_string(victim) + " (rank " +
              std::to_string(victim) + ") has not been heard") == 0);
    // A report that was under way may have come after its death.
    CHECK(seconds.back() > kSilence_s - Reporter::kReportEvery_s - 2);
    CHECK(seconds.back() <
          kSilence_s + weather.slow_delay_s + kSecondObserverAfter_s + 1);
    // Also the hosts that the end code did not reach end: they are cut off.
    cluster.run_for(kSilence_s + weather.longest_outage_s + 2);
    CHECK(cluster.ended() == kHosts - 1);
  }
  write_figures({{"test", "dead host"},
                 {"hosts", kHosts},
                 {"silence_s", kSilence_s},
                 {"seconds_to_verdict", seconds}});
}
