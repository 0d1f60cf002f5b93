#include "run_end.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <thread>
#include <utility>

#include "chexnet/comm/watch/hard_exit.hpp"
#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/launch/signals.hpp"

namespace chexnet {
namespace {

// A file system or a log that hangs must not keep us.
constexpr int kFileTimeout_s = 5;
constexpr auto kPostMortem = std::chrono::milliseconds(500);
// The observer of this host, if there is one, is still telling the others.
constexpr auto kLastWords = std::chrono::milliseconds(100);

class ProcessEnd final : public RunEnd {
 public:
  ProcessEnd(std::filesystem::path run_folder, std::string resume_command,
             std::function<void()> last_act)
      : run_folder_(std::move(run_folder)),
        resume_command_(std::move(resume_command)),
        last_act_(std::move(last_act)) {}

  bool launcher_ends_job() const override {
    return chexnet::launcher_ends_job();
  }
  void exit_within_limit(int code) override {
    exit_within(kFileTimeout_s, code);
  }

  void explain(const Failure& failure,
               const std::vector<RankView>& views) override {
    PostMortem report;
    report.time = utc_time();
    report.cause = cause_name(failure.cause);
    report.ranks = failure.ranks;
    report.exit_code = failure.exit_code();
    report.what = failure_text(failure, views);
    report.checkpoint = "unknown, as the run folder does not answer";
    report.resume = resume_command_;
    report.views = views;
    // Our parent reads the file, and says the sentence last.
    std::packaged_task<std::string()> write(
        [folder = run_folder_, whole = report]() mutable -> std::string {
          if (read_postmortem(folder)) return "";
          whole.checkpoint = last_checkpoint(folder);
          write_postmortem(folder, whole);
          if (!started_by_parent(process_environment()))
            return whole.sentence();
          return "the run ends; the last line and " +
                 (folder / "postmortem.json").string() + " say why";
        });
    auto written = write.get_future();
    std::thread(std::move(write)).detach();
    std::string said = report.sentence();
    std::exception_ptr problem;
    if (written.wait_for(kPostMortem) == std::future_status::ready) {
      try {
        said = written.get();
      } catch (...) {
        problem = std::current_exception();
      }
    }
    if (!said.empty()) log_error("[watchdog] " + said);
    if (problem) std::rethrow_exception(problem);
  }

  void log_line(const std::string& error) override { log_error(error); }

  void end_process(int code) override {
    exit_within_limit(code);
    try {
      last_act_();
    } catch (const std::exception& e) {
      log_line(e.what());
    }
    std::this_thread::sleep_for(kLastWords);
    exit_and_end_launcher(code);
  }

 private:
  std::filesystem::path run_folder_;
  std::string resume_command_;
  std::function<void()> last_act_;
};

}  // namespace

std::unique_ptr<RunEnd> process_end(std::filesystem::path run_folder,
                                    std::string resume_command,
                                    std::function<void()> last_act) {
  return std::make_unique<ProcessEnd>(
      std::move(run_folder), std::move(resume_command), std::move(last_act));
}

}  // namespace chexnet
