#include "reporter.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "messages.hpp"

namespace chexnet {
namespace {

constexpr double kNotYet = -1e9;  // on the steady clock
// An observer that has not answered for so long may be reached another way.
constexpr double kAnswerWithin_s = 2;

}  // namespace

Reporter::Reporter(Options options, HostRanks& host, ReportChannel& channel,
                   RunEnd& end, SteadyClock clock)
    : options_(std::move(options)),
      host_(host),
      channel_(channel),
      end_(end),
      clock_(std::move(clock)),
      reported_s_(kNotYet),
      answered_s_(channel.observers(), clock_()) {
  assert(options_.local_rank >= 0 && options_.local_rank < host_.size());
  assert(!options_.observers.empty() && options_.silence_s > 0);
}

void Reporter::heartbeat(bool resumed) {
  host_.set_heartbeat(clock_());
  if (const int code = host_.end_code(); code != 0) {
    end_.end_process(code);
    return;
  }

  const bool leads_now = leads();
  // A rank that takes over, or was stopped, has heard nothing lately and gives
  // its observers time.
  if ((leads_now && !led_) || resumed) restart_timeouts();
  led_ = leads_now;
  if (leads_now && clock_() - reported_s_ >= kReportEvery_s) report();
}

void Reporter::say_goodbye() {
  if (leads()) report();
}

bool Reporter::leads() {
  if (channel_.observers() == 0) return false;  // nobody to report to
  for (int before = 0; before < options_.local_rank; ++before) {
    const RankView view = host_.view(before);
    const bool runs =
        !view.ended && !view.gone && view.heartbeat_age_s < kLeaderSilence_s;
    if (runs) return false;
  }
  return true;
}

void Reporter::restart_timeouts() { std::ranges::fill(answered_s_, clock_()); }

void Reporter::report() {
  reported_s_ = clock_();
  std::vector<RankView> views;
  for (int i = 0; i < host_.size(); ++i) views.push_back(host_.view(i));

  if (const int code = exchange_all(report_line(views)); code != 0)
    host_.set_end_code(code);
  if (is_cut_off()) end_host();
}

int Reporter::exchange_all(const std::string& line) {
  int end_code = 0;
  for (size_t i = 0; i < answered_s_.size(); ++i) {
    for (const auto& answer : channel_.exchange(i, line)) {
      const auto code = read_answer(answer, options_.answer_token);
      if (!code) continue;
      answered_s_[i] = clock_();
      if (*code != 0) end_code = *code;
    }
    if (clock_() - answered_s_[i] > kAnswerWithin_s) channel_.reconnect(i);
  }
  return end_code;
}

bool Reporter::is_cut_off() const {
  if (options_.observer_here) return false;
  return std::ranges::none_of(answered_s_, [&](double answered_s) {
    return clock_() - answered_s < options_.silence_s;
  });
}

void Reporter::end_host() {
  const int code = static_cast<int>(ExitCode::kDevice);
  end_.exit_within_limit(code);
  end_.log_line("[watchdog] " + options_.host + ": no heartbeat from ranks " +
                std::to_string(options_.observers.front()) + " and " +
                std::to_string(options_.observers.back()) + " for " +
                fixed(options_.silence_s, 0) +
                " s: this host is cut off from them and ends its ranks");
  host_.set_end_code(code);
}

}  // namespace chexnet
