// Every rank has its signals, but rank 0 alone looks at the STOP file and the
// clocks: ranks would see them at different moments. The answer of each goes
// into the ranks' next common sum, where one yes is enough.
#include "chexnet/train/run/stop_request.hpp"

#include <algorithm>

#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/signals.hpp"

namespace chexnet {
namespace {
constexpr const char* kOnRequest = "stopped on request";
}  // namespace

StopRequest::StopRequest(const Config& config, const RunFolder& folder,
                         bool first_rank)
    : config_(config), folder_(folder), first_rank_(first_rank) {
  if (first_rank) clock_ = std::make_unique<JobClock>(config.launch);
}

bool StopRequest::asked(double ahead_s) {
  if (stop_requested())
    reason_ = kOnRequest;
  else if (clock_ != nullptr)
    reason_ = reason_of_rank_0(ahead_s);
  return !reason_.empty();
}

std::string StopRequest::reason_of_rank_0(double ahead_s) const {
  if (folder_.stop_file_exists()) return "stopped by the STOP file";
  const auto left = clock_->left_s();
  if (!left || *left > config_.launch.stop_margin_s + ahead_s) return "";
  return "stopped with " + readable_s(std::max(0.0, *left)) +
         " left of the job's time";
}

std::optional<double> StopRequest::job_left_s() const {
  return clock_ == nullptr ? std::nullopt : clock_->left_s();
}

bool StopRequest::may_wait(double waited_s) const {
  constexpr double kPatience_s = 600, kToLeave_s = 15;
  const double most_s =
      stop_requested() ? std::min(kPatience_s, config_.launch.stop_margin_s)
                       : kPatience_s;
  const auto left = job_left_s();
  return waited_s < most_s && (!left || *left > kToLeave_s);
}

std::string StopRequest::reason() const {
  // A signal may have reached other ranks only.
  return reason_.empty() ? kOnRequest : reason_;
}

ExitCode StopRequest::stopped(int64_t step, MetricsLog* metrics) const {
  if (metrics != nullptr) {
    MetricFields fields = {{"reason", reason()}};
    if (const auto failed = folder_.failed_commands())
      fields.emplace_back("after_checkpoint_failures", *failed);
    metrics->write("stop", step, fields);
    log_info(reason() + " at step " + std::to_string(step) +
             ": checkpoint written, exit 75; continue with --resume auto");
  }
  return ExitCode::kRequeue;
}

ExitCode StopRequest::stopped_before_training() const {
  if (first_rank_)
    log_info(reason() +
             " before the first step: nothing was trained by this start, exit "
             "75; --resume auto "
             "looks at the images again and goes on");
  return ExitCode::kRequeue;
}

}  // namespace chexnet
