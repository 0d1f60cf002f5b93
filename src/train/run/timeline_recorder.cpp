#include "chexnet/train/run/timeline_recorder.hpp"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/report/timeline.hpp"

namespace chexnet {
namespace {

constexpr const char* kRequestFile = "TIMELINE";
constexpr int64_t kStepsOnRequest = 20;

std::string text_of(const StepWindow& steps) {
  return std::to_string(steps.first) + ":" + std::to_string(steps.last);
}

}  // namespace

StepWindow step_window(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const auto first = parsed_number<int64_t>(text.substr(0, colon));
  const auto last =
      parsed_number<int64_t>(text.substr(std::min(colon + 1, text.size())));
  if (!first || !last || *first < 1 || *last < *first)
    throw ConfigError(
        "[train] --steps {}: is no FIRST:LAST. Hint: --steps 200:220 records "
        "steps 200 to 220, counted from 1 at the run's begin",
        text);
  return {*first, *last};
}

TimelineRecorder::TimelineRecorder(Communicator& comm, Profiler& profiler,
                                   Request request,
                                   std::filesystem::path run_folder)
    : comm_(comm), profiler_(profiler), run_folder_(std::move(run_folder)) {
  if (request.file.empty()) return;
  const Window window{std::move(request.file),
                      request.steps.value_or(StepWindow{})};
  if (request.steps)
    given_ = window;
  else
    start(window);
}

void TimelineRecorder::start(const Window& window) {
  now_ = window;
  profiler_.record(std::make_shared<Recording>(timeline_events(comm_.size())));
}

bool TimelineRecorder::asked() const {
  std::error_code error;
  return looks_ && first_rank() &&
         std::filesystem::exists(run_folder_ / kRequestFile, error);
}

void TimelineRecorder::take_request(int64_t step) {
  const bool given_soon = given_ &&
                          given_->steps.first <= step + kStepsOnRequest &&
                          given_->steps.last > step;
  if (first_rank()) {
    std::error_code error;
    std::filesystem::remove(run_folder_ / kRequestFile, error);
    if (error) {
      looks_ = false;
      log_warning("[timeline] " + (run_folder_ / kRequestFile).string() +
                  ": cannot be removed: " + error.message() +
                  ". Hint: remove it; this start does not look for it again");
    }
    if (now_)
      log_info("timeline: not begun, for one is recorded already, into " +
               now_->file.string());
    else if (given_soon)
      log_info("timeline: not begun, for steps " + text_of(given_->steps) +
               " come before its end, into " + given_->file.string());
  }
  if (!now_ && !given_soon)
    asked_ = {run_folder_ / "timeline.json",
              {step + 1, step + kStepsOnRequest}};
}

bool TimelineRecorder::begins_at(int64_t step) const {
  const auto& next = asked_ ? asked_ : given_;
  return !now_ && next && step >= next->steps.first && step <= next->steps.last;
}

bool TimelineRecorder::begin_step(int64_t step, const StepTimes& times) {
  if (!begins_at(step)) return false;
  auto& next = asked_ ? asked_ : given_;
  next->steps.first = step;  // that of a request or of a resume may be later
  start(*std::exchange(next, std::nullopt));
  times_ = times;
  return true;
}

bool TimelineRecorder::end_step(int64_t step, const StepTimes& times) {
  if (!ends_at(step)) return false;
  const Window window = *now_;
  const Overlap overlap = mean_overlap(comm_, times.since(times_));
  try {
    write();
    if (first_rank())
      log_info("timeline: steps " + text_of(window.steps) + " are in " +
               window.file.string() + "; " + overlap_text(overlap));
  } catch (const CheckpointError& e) {
    log_warning(e.what());  // a full disk ends no training for a timeline
  }
  return true;
}

void TimelineRecorder::finish() {
  if (given_ && first_rank())
    log_warning("[timeline] steps " + text_of(given_->steps) +
                " were not recorded: this start did not make them. Hint: "
                "--steps counts from the run's begin, up to train.max_steps");
  if (!now_) return;
  const std::filesystem::path file = now_->file;
  try {
    write();
    if (first_rank()) log_info("timeline: " + file.string());
  } catch (const CheckpointError& e) {
    log_warning(e.what());  // the run has its results
  }
}

// Spans that loader threads still add to the recording are lost.
void TimelineRecorder::write() {
  const auto recording = profiler_.recording();
  profiler_.record(nullptr);
  const Window window = *std::exchange(now_, std::nullopt);
  write_timeline(comm_, *recording, clock_offset_s(comm_), window.file);
}

}  // namespace chexnet
