// Copying takes longer than writing: meanwhile a run replaces the model file of
// a checkpoint (thresholds) and removes old ones. A tool that walks the run
// folder itself would fail, or mix two contents. Files of a run are replaced
// but not changed, apart from those that only grow, so links keep them.
#include "after_checkpoint.hpp"

#include <chrono>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/child_process.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOption = "[run] run.after_checkpoint";
constexpr const char* kViews = ".after_checkpoint";

// The last line that says something.
std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return {};
  const size_t begin = text.find_last_of("\r\n", end);
  return text.substr(begin + 1, end - begin);
}

}  // namespace

AfterCheckpoint::AfterCheckpoint(std::string command, const fs::path& run)
    : command_(std::move(command)),
      run_(fs::absolute(run).lexically_normal()),
      views_(run_ / kViews) {}

void AfterCheckpoint::remove_left_views(const fs::path& run) {
  std::error_code ignored;
  fs::remove_all(run / kViews, ignored);
}

AfterCheckpoint::~AfterCheckpoint() {
  thread_ = {};
  remove_left_views(run_);
}

AfterCheckpoint::View AfterCheckpoint::view() {
  if (links_refused_) return {run_, {}};
  const fs::path folder = run_.has_filename() ? run_ : run_.parent_path();
  const fs::path made = views_ / std::to_string(++views_made_),
                 path = made / folder.filename();
  constexpr auto kLinks = fs::copy_options::recursive |
                          fs::copy_options::create_hard_links |
                          fs::copy_options::copy_symlinks;
  try {
    fs::create_directories(path);
    for (const auto& entry : fs::directory_iterator(run_)) {
      const fs::path name = entry.path().filename();
      if (name.string().starts_with('.') || name == "STOP" ||
          name == "TIMELINE")
        continue;
      if (entry.is_symlink())  // to a larger disk
        fs::create_symlink(fs::canonical(entry.path()), path / name);
      else
        fs::copy(entry.path(), path / name, kLinks);
    }
    return {path, made};
  } catch (const fs::filesystem_error& e) {
    std::error_code ignored;
    fs::remove_all(made, ignored);
    links_refused_ = true;
    log_warning(std::string(kOption) + ": " + e.what() +
                ": the command gets the run folder itself, where files may be "
                "replaced while it reads them");
    return {run_, {}};
  }
}

void AfterCheckpoint::due() {
  std::optional<View> next = view();
  {
    const std::lock_guard lock(mutex_);
    std::swap(next_, next);
  }
  std::error_code ignored;
  if (next) fs::remove_all(next->made, ignored);
  changed_.notify_all();
  if (!thread_.joinable())
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

void AfterCheckpoint::work(const std::stop_token& stop) {
  while (true) {
    View view;
    {
      std::unique_lock lock(mutex_);
      is_running_ = false;
      changed_.notify_all();
      changed_.wait(lock, stop, [this] { return next_.has_value(); });
      if (stop.stop_requested()) return;
      view = *std::exchange(next_, std::nullopt);
      is_running_ = true;
    }
    run(view, stop);
    std::error_code ignored;
    if (!view.made.empty()) fs::remove_all(view.made, ignored);
  }
}

void AfterCheckpoint::run(const View& view, const std::stop_token& stop) {
  std::string wrong;
  try {
    const auto ended = run_in_shell(command_, view.path.string(), stop);
    if (ended.exit_code == 0 || stop.stop_requested()) return;
    const std::string line = last_line(ended.output);
    wrong = "exit code " + std::to_string(ended.exit_code) +
            (line.empty() ? ", nothing on stderr" : ": " + line);
  } catch (const Error& e) {
    wrong = e.what();
  }
  log_warning(std::string(kOption) + ": " + wrong);
  const std::lock_guard lock(mutex_);
  ++failures_;
}

void AfterCheckpoint::finish(
    const std::function<bool(double waited_s)>& may_wait) {
  constexpr double kBetweenLines_s = 30;
  constexpr auto kLook = std::chrono::milliseconds(200);
  due();
  const double start_s = now_s();
  double told_s = 0;
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return !is_running_ && !next_; };
  while (!changed_.wait_for(lock, kLook, is_done)) {
    const double waited_s = now_s() - start_s;
    if (!may_wait(waited_s)) {
      ++failures_;
      lock.unlock();
      log_warning(std::string(kOption) + ": killed, as it did not end in the " +
                  readable_s(waited_s) + " that this run could wait for it");
      thread_ = {};
      return;
    }
    if (waited_s - told_s < kBetweenLines_s) continue;
    told_s = waited_s;
    log_info("run.after_checkpoint still runs, " + readable_s(waited_s) +
             " after the end");
  }
}

int64_t AfterCheckpoint::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace chexnet
