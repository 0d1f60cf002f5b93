// The invariant: every rank enters the same collectives in the same order,
// whatever its work does. So a rank never leaves the loop of meet() alone: it
// first tells all in the next meeting of an error, a stop or a lack of
// progress, which ends the call on all of them.
#include "chexnet/comm/shared_work.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/timeouts.hpp"

namespace chexnet {
namespace {

constexpr double kMeetEvery_s = 0.5;
// For work to reach its next progress after an error.
constexpr auto kLetGo = std::chrono::seconds(2);

EndOfStuckWork end_of_stuck_work;

struct Stopped {};

// The work of this rank. Lives as long as its thread, which may never end.
struct Job {
  WorkProgress progress;
  std::mutex mutex;  // guards the rest
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr failure;
};

void run(Job& job, const std::function<void(WorkProgress&)>& work) {
  std::exception_ptr failure;
  try {
    work(job.progress);
  } catch (const Stopped&) {  // a stop on request, or another rank's error is
                              // reported
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(job.mutex);
  job.done = true;
  job.failure = failure;
  job.ended.notify_all();
}

struct Failure {
  ExitCode code = ExitCode::kDone;
  std::string text;
};

Failure describe(const std::exception_ptr& failure) {
  if (failure == nullptr) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const std::exception& e) {
    return {ExitCode::kDevice, e.what()};
  }
}

}  // namespace

void WorkProgress::advance() {
  ++count_;
  if (stop_) throw Stopped();
}

// One rank's part of a call.
class SharedWork {
 public:
  SharedWork(Communicator& comm, const SharedWorkOptions& options,
             const std::function<void(WorkProgress&)>& work)
      : comm_(comm),
        options_(options),
        meet_every_s_(std::min(kMeetEvery_s, options.timeout_s / 4)),
        job_(std::make_shared<Job>()) {
    job_->done = !work;
    if (work) thread_ = std::thread([job = job_, work] { run(*job, work); });
  }
  ~SharedWork() {
    if (!thread_.joinable()) return;
    // An exception passes, and the work refers to objects of its callers.
    job_->progress.stop_ = true;
    std::unique_lock lock(job_->mutex);
    const bool ended =
        job_->ended.wait_for(lock, kLetGo, [&] { return job_->done; });
    lock.unlock();
    ended ? thread_.join() : thread_.detach();
  }
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;

  bool wait() {
    while (meet()) {
    }
    if (stuck_)
      thread_.detach();  // it cannot be ended
    else if (thread_.joinable())
      thread_.join();
    if (any_rank(comm_, failed_)) rethrow();
    return !stopped_;
  }

 private:
  // False when no rank works any more.
  bool meet() {
    const bool done = wait_a_little();
    const bool works = !done && !stuck_;
    failed_ = stuck_ || (done && job_->failure != nullptr);
    const bool asked = options_.stop && options_.stop();
    double state[] = {works ? 1.0 : 0.0, failed_ ? 1.0 : 0.0,
                      asked ? 1.0 : 0.0};
    comm_.all_reduce(state, ReduceOp::kMax);
    const bool any_works = state[0] > 0;
    // After the last work nothing is left to stop.
    if (any_works && state[2] > 0) stopped_ = true;
    if (stopped_ || state[1] > 0) job_->progress.stop_ = true;
    return any_works;
  }

  bool wait_a_little() {
    std::unique_lock lock(job_->mutex);
    if (stuck_) return false;
    const double begin = options_.clock();
    SuspensionMeter suspension(begin);
    const std::chrono::duration<double> pause(meet_every_s_);
    if (job_->ended.wait_for(lock, pause, [&] { return job_->done; }))
      return true;
    const double end = options_.clock();
    look_for_progress(end - begin - suspension.look(end));
    return false;
  }

  void look_for_progress(double waited_s) {
    const uint64_t count = job_->progress.count_;
    still_s_ = count == seen_ ? still_s_ + waited_s : 0;
    seen_ = count;
    stuck_ = still_s_ > options_.timeout_s;
  }

  // All ranks, when any of them failed.
  [[noreturn]] void rethrow() {
    const Failure own = stuck_ ? stuck() : describe(job_->failure);
    const Failure first = first_of_all(own);
    if (stuck_ && end_of_stuck_work) end_of_stuck_work(own.text);
    if (stuck_) throw HangError(own.text);
    if (job_->failure != nullptr) std::rethrow_exception(job_->failure);
    throw Error(first.code, first.text);
  }

  Failure stuck() const {
    return {
        ExitCode::kHang,
        "[work] rank " + std::to_string(comm_.rank()) + " on " + host_name() +
            ": " + options_.what + " made no progress for " +
            fixed(options_.timeout_s, 0) +
            " s. Hint: does the storage answer? Else raise launch.timeout_s"};
  }

  Failure first_of_all(const Failure& own) {
    const std::string line =
        std::to_string(static_cast<int>(own.code)) + " " + own.text;
    for (const auto& text : gather_text(comm_, line)) {
      const auto code = static_cast<ExitCode>(std::stoi(text));
      if (code != ExitCode::kDone)
        return {code, text.substr(text.find(' ') + 1)};
    }
    return own;
  }

  Communicator& comm_;
  const SharedWorkOptions& options_;
  double meet_every_s_;
  std::shared_ptr<Job> job_;
  std::thread thread_;
  bool stuck_ = false, failed_ = false, stopped_ = false;
  uint64_t seen_ = 0;
  double still_s_ = 0;
};

void set_end_of_stuck_work(EndOfStuckWork end) {
  end_of_stuck_work = std::move(end);
}

bool share_work(Communicator& comm, const SharedWorkOptions& options,
                const std::function<void(WorkProgress&)>& work) {
  return SharedWork(comm, options, work).wait();
}

}  // namespace chexnet
