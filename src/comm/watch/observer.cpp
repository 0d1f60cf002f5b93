#include "observer.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <optional>
#include <utility>

#include "chexnet/launch/timeouts.hpp"
#include "messages.hpp"

namespace chexnet {
namespace {

constexpr double kNever = -1e9;  // on the steady clock
// The report of a host that was heard within this time is current.
constexpr double kFresh_s = 1;
// While the launcher ends the job there is a second to find out why.
constexpr double kSilenceWhileEnding_s = 1;

}  // namespace

Observer::Observer(Options options, std::vector<RankView> ranks,
                   HostRanks& host, ReportInbox* inbox, RunEnd& end,
                   SteadyClock clock)
    : options_(std::move(options)),
      views_(std::move(ranks)),
      host_(host),
      inbox_(inbox),
      end_(end),
      clock_(std::move(clock)),
      heard_s_(views_.size(), clock_()),
      suspected_s_(kNever),
      resumed_s_(kNever) {
  assert(std::ranges::find(options_.observers, options_.rank) !=
         options_.observers.end());
  assert(options_.rank < static_cast<int>(views_.size()));
}

void Observer::look(bool resumed) {
  const double now = clock_();
  if (resumed) resumed_s_ = now;
  take_reports();
  auto views = survey();
  // A suspended process did not hang meanwhile.
  for (auto& view : views)
    view.phase_age_s = std::min(view.phase_age_s, now - resumed_s_);

  // After a suspension of the whole job every rank seems silent.
  if (now - resumed_s_ < options_.timeouts.silence_s || announced_) return;

  WatchTimeouts timeouts = options_.timeouts;
  if (end_.launcher_ends_job())
    timeouts.silence_s = std::min(timeouts.silence_s, kSilenceWhileEnding_s);

  const auto failure = detect_failure(views, timeouts);
  if (!failure) {
    suspected_s_ = kNever;
    return;
  }
  if (suspected_s_ == kNever) suspected_s_ = now;
  if (!must_wait(*failure)) announce(*failure, views);
}

void Observer::take_reports() {
  if (inbox_ == nullptr) return;
  inbox_->take(clock_(), [&](const std::string& line) -> std::string {
    const auto ranks = read_report(line, views_);
    if (!ranks) return "";
    for (const int rank : *ranks)
      heard_s_[static_cast<size_t>(rank)] = clock_();
    return answer_line(options_.answer_token, 0);
  });
}

// All ranks as they are now: ages grow from the time of the report.
std::vector<RankView> Observer::survey() {
  for (int i = 0; i < host_.size(); ++i) {
    RankView view = host_.view(i);
    const auto rank = static_cast<size_t>(view.rank);
    view.host = views_[rank].host;
    view.gpu = views_[rank].gpu;
    views_[rank] = view;
    heard_s_[rank] = clock_();
  }

  std::vector<RankView> now = views_;
  for (auto& view : now) {
    const double heard = heard_s_[static_cast<size_t>(view.rank)];
    view.host_silent_s = std::max(0.0, clock_() - heard);
    // Nobody knows whether a silent host's ranks are alive.
    if (view.host_silent_s < kFresh_s)
      view.heartbeat_age_s += view.host_silent_s;
    view.phase_age_s += view.host_silent_s;
  }
  return now;
}

// The second observer lets the first speak: it cannot tell a host that is down
// from a cut of its own link. But a first one that is dead or stopped will
// never speak.
bool Observer::must_wait(const Failure& failure) const {
  const int first = options_.observers.front();
  if (options_.rank == first) return false;

  const bool ends_it = failure.cause == FailureCause::kDied ||
                       failure.cause == FailureCause::kStopped;
  const bool is_first =
      std::ranges::find(failure.ranks, first) != failure.ranks.end();
  if (ends_it && is_first) return false;
  return clock_() - suspected_s_ < kSecondObserverAfter_s;
}

void Observer::announce(const Failure& failure,
                        const std::vector<RankView>& views) {
  announced_ = true;
  const int code = failure.exit_code();
  end_.exit_within_limit(code);
  try {
    end_.explain(failure, views);
  } catch (const std::exception& e) {
    end_.log_line(e.what());
  }
  if (inbox_ != nullptr)
    inbox_->tell_all(answer_line(options_.answer_token, code));
  host_.set_end_code(code);
}

}  // namespace chexnet
