#include "chexnet/train/run/folder_records.hpp"

#include <sys/stat.h>

#include <exception>
#include <system_error>
#include <utility>

#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/report/prometheus_file.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/train/run/run_folder.hpp"

namespace chexnet {
namespace {

// Each start that takes the folder writes the config.
constexpr const char* kConfigFile = "config.yaml";
constexpr const char* kStopFile = "STOP";

RunRecords::Mark mark_of(const std::filesystem::path& file) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return std::pair(info.st_ino,
                   info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec);
}

}  // namespace

FolderRecords::FolderRecords(const Config* config, bool resumes,
                             std::string resume_command)
    : config_(config),
      folder_(config != nullptr ? run_folder_of(*config) : ""),
      resumes_(resumes),
      resume_command_(std::move(resume_command)),
      config_before_(mark_of(folder_ / kConfigFile)),
      stop_before_(mark_of(folder_ / kStopFile)) {}

bool FolderRecords::are_ours() const {
  if (!exist()) return false;
  const Mark now = mark_of(folder_ / kConfigFile);
  return resumes_ || !now || now != config_before_;
}

void FolderRecords::refuse() const { refuse_used_folder(folder_); }

RunRecords::Mark FolderRecords::begun() const {
  if (!are_ours()) return std::nullopt;
  return mark_of(folder_ / kConfigFile);
}

std::string FolderRecords::checkpoint() const {
  return last_checkpoint(folder_);
}

int64_t FolderRecords::batch() const {
  return config_ != nullptr ? batch_of_run(*config_) : 0;
}

bool FolderRecords::may_be_written() const {
  return are_ours() && !run_is_locked(folder_).value_or(false);
}

WaitDeadline::Wait FolderRecords::storage_wait() const {
  if (config_ == nullptr) return WaitDeadline::Wait(nullptr);
  if (!deadline_)
    deadline_ =
        storage_deadline(config_->launch.timeout_s,
                         "looking into the run folder " + folder_.string());
  return deadline_->wait();
}

void FolderRecords::put_aside() {
  const auto wait = storage_wait();
  config_before_start_ = mark_of(folder_ / kConfigFile);
  if (may_be_written()) put_postmortem_aside(folder_);
}

std::optional<EndNote> FolderRecords::postmortem() const {
  const auto wait = storage_wait();
  if (!are_ours()) return std::nullopt;
  const auto found = read_postmortem(folder_);
  if (!found) return std::nullopt;
  return EndNote{found->sentence, found->exit_code};
}

std::optional<int> FolderRecords::end_code() const {
  const auto wait = storage_wait();
  const Mark now = begun();
  if (!now || now == config_before_start_) return std::nullopt;
  try {
    const RunSummary run = summarize_run(folder_);
    if (run.state == "finished") return static_cast<int>(ExitCode::kDone);
    if (run.state == "stopped") return static_cast<int>(ExitCode::kRequeue);
    if (run.state == "failed") return run.exit_code;
  } catch (const Error& e) {
    log_warning(e.what());
  }
  return std::nullopt;
}

EndNote FolderRecords::explain(const std::string& what) {
  const auto wait = storage_wait();
  PostMortem report;
  report.time = utc_time();
  report.cause = "launcher";
  report.exit_code = static_cast<int>(ExitCode::kDevice);
  report.what = what;
  if (!are_ours())
    return {report.what + "; " + folder_.string() +
                " holds another run, which is as it was",
            report.exit_code};
  report.checkpoint = checkpoint();
  report.resume = resume_command_;
  std::error_code error;
  if (std::filesystem::exists(folder_, error) && may_be_written()) {
    try {
      write_postmortem(folder_, report);
    } catch (const Error& e) {
      log_warning(e.what());
    }
  }
  return {report.sentence(), report.exit_code};
}

void FolderRecords::explain_late_start(const std::string& what,
                                       const std::string& hint) {
  log_error("[launch] " + what + ". Hint: " + hint +
            " Else raise launch.timeout_s");
  if (!may_be_written() || read_postmortem(folder_)) return;
  PostMortem report;
  report.time = utc_time();
  report.cause = "start";
  report.exit_code = static_cast<int>(ExitCode::kHang);
  report.what = what;
  report.checkpoint = checkpoint();
  report.resume = resume_command_;
  try {
    std::filesystem::create_directories(folder_);
    write_postmortem(folder_, report);
  } catch (const std::exception& e) {
    log_warning(e.what());
  }
}

void FolderRecords::explain_stop() {
  PostMortem report;
  report.what =
      "[launch] stopped on request, or the job was canceled: a signal ended "
      "the ranks or mpirun";
  if (are_ours()) report.checkpoint = checkpoint();
  report.resume = resume_command_;
  if (may_be_written()) put_postmortem_aside(folder_);
  log_warning(are_ours() ? report.sentence() : report.what);
  record_stop("stopped by a signal that ended ranks or mpirun");
}

void FolderRecords::record_stop(const std::string& reason) {
  if (!begun() || !may_be_written()) return;
  try {
    write_stop_event(folder_, reason);
  } catch (const std::exception& e) {
    log_warning(e.what());
  }
}

void FolderRecords::tell_monitors() { renew_prometheus_file(folder_); }

bool FolderRecords::stop_is_requested() const {
  const Mark now = mark_of(folder_ / kStopFile);
  return now && now != stop_before_;
}

void FolderRecords::remove_old_stop_file() {
  std::error_code ignored;  // a rank says why it cannot be removed
  if (stop_before_ && may_be_written() && !stop_is_requested())
    std::filesystem::remove(folder_ / kStopFile, ignored);
}

}  // namespace chexnet
