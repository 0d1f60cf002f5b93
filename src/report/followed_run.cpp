#include "chexnet/report/followed_run.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "chexnet/config/load.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/metric_lines.hpp"
#include "chexnet/report/waiting_run.hpp"
#include "chexnet/watch/postmortem.hpp"
#include "run_events.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// The state of a run follows from the last event that says one, and only for a
// run that seems to be running from what other processes see:
//
//   start, restart -> running, stop -> stopped, error -> failed,
//   end -> finished
//   running with a post-mortem                 -> aborted
//   running, its lock free on this host        -> died
//   running, silent for ten minutes on another
//     host, where the lock may not reach       -> silent
//
// A run goes through these several times, once for each start.

// A run that logs nothing for so long is not simply busy.
constexpr double kSilent = 600;

// What a run that wrote neither an end nor an error is doing.
std::string state_of_silence(const RunSummary& run, const fs::path& folder) {
  const auto locked = run_is_locked(folder);
  if (locked == true) return "running";
  if (locked == false && run.host == host_name()) return "died";
  const bool silent =
      run.written_s && system_time_s() - *run.written_s > kSilent;
  return silent ? "silent" : "running";
}

void look_at_processes(RunSummary& run, const fs::path& folder) {
  if (run.state != "running") return;
  const auto note = read_postmortem(folder);
  if (!note) {
    run.state = state_of_silence(run, folder);
    return;
  }
  run.state = "aborted";
  run.last_words = printable(note->sentence);
  run.exit_code = note->exit_code;
}

// A regular file that is open while this object lives; none where it is absent.
class EventFile {
 public:
  explicit EventFile(const fs::path& path)
      : path_(path),
        fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ < 0 && errno == ENOENT) return;
    if (fd_ < 0 || ::fstat(fd_, &info_) != 0 || !S_ISREG(info_.st_mode)) {
      if (fd_ >= 0) ::close(fd_);
      fd_ = -1;
      read_text(path);  // throws: says what it is, and what to do
    }
  }
  ~EventFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  bool is_there() const { return fd_ >= 0; }
  double written_s() const { return static_cast<double>(info_.st_mtim.tv_sec); }
  // All that there is from `offset` on.
  std::string from(uint64_t offset) const {
    const auto size = static_cast<uint64_t>(info_.st_size);
    std::string text(size > offset ? size - offset : 0, '\0');
    const ptrdiff_t count =
        read_at(fd_, offset, std::as_writable_bytes(std::span(text)));
    if (count < 0) throw_unreadable("report", path_.string(), errno);
    text.resize(static_cast<size_t>(count));
    return text;
  }

 private:
  fs::path path_;
  int fd_;
  struct stat info_ {};
};

}  // namespace

RunSummary summarize_run(const fs::path& folder) {
  return FollowedRun(folder).now();
}

FollowedRun::FollowedRun(fs::path folder) : folder_(std::move(folder)) {
  events_.folder = folder_.string();
  const fs::path whole = fs::absolute(folder_).lexically_normal();
  events_.name = whole.filename().string();
  if (events_.name.empty())
    events_.name = whole.parent_path().filename().string();
  events_.state = "not started";
}

RunSummary FollowedRun::now() {
  if (is_waiting_run(folder_)) {
    RunSummary run;
    run.folder = events_.folder;
    run.name = events_.name;
    run.state = "waiting";
    run.job = waiting_job(folder_);
    return run;
  }
  check_holds_run(folder_);
  read_config();
  read_events();
  RunSummary run = events_;
  find_checkpoint(run);
  look_at_processes(run, folder_);
  estimate_time_left(run);
  return run;
}

// A resume may have changed it.
void FollowedRun::read_config() {
  const fs::path path = folder_ / "config.yaml";
  std::string text = read_text(path);
  if (text == config_text_) return;
  const Config config = load_config({path}, {});
  events_.batch = config.train.batch.value_or(0);
  for (const auto& option : config_options())
    events_.config[option.key] = option_text(option, config);
  config_text_ = std::move(text);
}

// A resume cuts the file, and what it writes then may be longer than what we
// have read: the bytes before our place tell. Lines hold times, so that no two
// are equal by chance.
void FollowedRun::read_events() {
  const EventFile file(folder_ / "metrics.jsonl");
  std::string text;
  if (file.is_there()) text = file.from(read_ - tail_.size());
  if (!text.starts_with(tail_)) {
    FollowedRun fresh(folder_);
    fresh.events_.batch = events_.batch;
    fresh.events_.config = std::move(events_.config);
    fresh.config_text_ = std::move(config_text_);
    *this = std::move(fresh);
    if (file.is_there()) text = file.from(0);
  }
  events_.written_s.reset();
  if (!file.is_there()) return;
  events_.written_s = file.written_s();

  // A line without its end is still being written.
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  if (text.size() <= tail_.size()) return;
  for_each_event(text.substr(tail_.size()),
                 [&](const nlohmann::json& event, const std::string&) {
                   add_event(events_, event);
                 });
  read_ += text.size() - tail_.size();
  constexpr size_t kTail = 512;
  tail_ = text.substr(text.size() - std::min(text.size(), kTail));
}

FollowedRuns::FollowedRuns(std::vector<std::string> folders)
    : folders_(std::move(folders)) {}

void FollowedRuns::warn(const std::string& text) {
  if (warnings_.insert(text).second && !warned_.contains(text))
    log_warning(text);
}

std::vector<RunSummary> FollowedRuns::now() {
  std::vector<RunSummary> found;
  std::map<fs::path, FollowedRun> kept;
  warned_ = std::exchange(warnings_, {});
  // Also what the library throws where a folder goes while it is looked at.
  const auto guarded = [&](const std::function<void()>& look) {
    try {
      look();
    } catch (const std::exception& e) {
      warn(e.what());
    }
  };
  const auto follow = [&](const fs::path& folder) {
    const fs::path whole = fs::absolute(folder).lexically_normal();
    if (kept.contains(whole)) return;
    auto known = runs_.extract(whole);
    FollowedRun run =
        known.empty() ? FollowedRun(folder) : std::move(known.mapped());
    found.push_back(run.now());
    kept.emplace(whole, std::move(run));
  };
  for (const auto& folder : folders_)
    guarded([&] {
      for (const auto& path :
           find_runs(folder, [&](const std::string& text) { warn(text); }))
        guarded([&] { follow(path); });
    });
  runs_ = std::move(kept);
  return found;
}

}  // namespace chexnet
