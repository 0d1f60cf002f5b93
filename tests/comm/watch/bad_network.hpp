// What a bad network does to the lines between the hosts of a simulated
// cluster. It is drawn from the seed, the line's ends and its moment alone, so
// any part of a simulation can be played by itself and is the same as in the
// whole.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace chexnet {

// Simulated time goes by ticks, which are exact in binary: a process looks 16
// times a second, and reports at each fourth.
constexpr double kTick_s = 1.0 / 16;
constexpr int kTicksOfReport = 4;

inline double seconds(int64_t tick) {
  return static_cast<double>(tick) * kTick_s;
}
// The last one at which processes report.
inline int64_t ticks(double seconds) {
  return static_cast<int64_t>(seconds / kTick_s) / kTicksOfReport *
         kTicksOfReport;
}

// Times in seconds.
struct Weather {
  double usual_delay_s = 0.02;   // mean; exponential
  double slow_share = 0.01;      // of the lines
  double slow_delay_s = 5;       // at most, of these; uniform
  double lost_share = 0.1;       // of the lines
  double outage_every_s = 600;   // mean, of a host
  double longest_outage_s = 30;  // uniform
};

enum class LineKind : uint8_t { kReport, kAnswer, kEnd };

// A line by its ends and by the tick at which it, or the report that it
// answers, was sent.
struct LineId {
  LineKind kind = LineKind::kReport;
  int from = 0, to = 0;
  int64_t tick = 0;
};

class Forecast {
 public:
  // For ticks from 0 on; after `end_s` no host has an outage.
  Forecast(const Weather& weather, int hosts, double end_s, uint64_t seed)
      : weather_(weather), seed_(mixed(seed)) {
    for (int host = 0; host < hosts; ++host) outages_.push_back(drawn(end_s));
  }

  // How long a line is under way; none: it is lost.
  std::optional<double> delay_s(const LineId& line) const {
    const auto ends = (static_cast<uint64_t>(line.from) << 34) |
                      (static_cast<uint64_t>(line.to) << 4) |
                      static_cast<uint64_t>(line.kind);
    uint64_t state =
        mixed(seed_ ^ mixed(ends) ^ (static_cast<uint64_t>(line.tick) << 20));
    const auto uniform = [&state] {
      state = mixed(state);
      return static_cast<double>(state >> 11) * 0x1p-53;
    };
    if (uniform() < weather_.lost_share) return std::nullopt;
    if (uniform() < weather_.slow_share)
      return weather_.slow_delay_s * uniform();
    return -weather_.usual_delay_s * std::log(1 - uniform());
  }
  double longest_delay_s() const { return weather_.slow_delay_s; }
  // A host without a network loses all from and to it.
  bool is_out(int host, double from_s, double to_s) const {
    const auto& outages = outages_[static_cast<size_t>(host)];
    const auto next = std::ranges::upper_bound(outages, from_s, std::less<>(),
                                               &Outage::end_s);
    return next != outages.end() && next->begin_s <= to_s;
  }
  uint64_t outages_until(double end_s) const {
    uint64_t count = 0;
    for (const auto& outages : outages_)
      count += static_cast<uint64_t>(std::ranges::count_if(
          outages,
          [&](const Outage& outage) { return outage.begin_s < end_s; }));
    return count;
  }

 private:
  struct Outage {
    double begin_s = 0, end_s = 0;
  };

  // SplitMix64's last step (Steele, Lea, Flood 2014).
  static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  std::vector<Outage> drawn(double end_s) {
    std::mt19937_64 random(seed_ + outages_.size());
    std::exponential_distribution<> pause(1 / weather_.outage_every_s);
    std::uniform_real_distribution<> length(0, weather_.longest_outage_s);
    std::vector<Outage> outages;
    for (double at = pause(random); at < end_s; at += pause(random)) {
      const double begin = at;
      at += length(random);
      outages.push_back({begin, at});
    }
    return outages;
  }

  Weather weather_;
  uint64_t seed_;
  std::vector<std::vector<Outage>> outages_;  // [host], by time
};

}  // namespace chexnet
