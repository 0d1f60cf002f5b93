// How a folder becomes a run, on rank 0:
//
//   no folder of other things, create, trust (nobody else's link or open
//   folder), lock                                   -> constructor
//   data read, weights loaded                       -> only logs are written
//   failed before here                              -> logs and folders go
//   config.yaml                                     -> claim(): now it is a run
//   checkpoints/…                                   -> the loop
//
// A start is a resume when there is a config.yaml; only a checkpoint gives it
// something to resume.
#include "chexnet/train/run/run_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <tuple>

#include "after_checkpoint.hpp"
#include "chexnet/comm/shared_work.hpp"
#include "chexnet/comm/watch/postmortem.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/report/run_files.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/report/waiting_run.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

const fs::file_time_type kProgramStart = fs::file_time_type::clock::now();

// Of this user, or of the administrator.
bool is_trusted(const struct stat& info) {
  return info.st_uid == ::geteuid() || info.st_uid == 0;
}

[[noreturn]] void refuse_foreign(const fs::path& path,
                                 const std::string& what) {
  throw CheckpointError(
      "[run] {}: {}, so its contents cannot be trusted. Hint: choose another "
      "folder with --out",
      path.string(), what);
}

// A link leads where its owner wants: only one of this user is followed, for
// example to a larger disk.
void require_own_link(const fs::path& path) {
  // With a slash at its end a name means what the link leads to.
  const fs::path link = path.has_filename() ? path : path.parent_path();
  struct stat info {};
  if (::lstat(link.c_str(), &info) == 0 && S_ISLNK(info.st_mode) &&
      !is_trusted(info))
    refuse_foreign(path, "is a link that another user made");
}

// A colleague's folder is fine, one that anybody may have filled is not.
void require_trusted_folder(const fs::path& path) {
  require_own_link(path);
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !is_trusted(info) &&
      (info.st_mode & S_IWOTH) != 0)
    refuse_foreign(path,
                   "belongs to another user and everybody may write there");
}

void create(const fs::path& folder, const fs::path& run) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw CheckpointError(
        "[run] {}: cannot be created: {}. Hint: choose a writable folder with "
        "--out",
        run.string(), error.message());
}

fs::path log_path(const fs::path& folder, int rank) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "rank-%03d.txt", rank);
  return folder / "log" / name.data();
}

// An old STOP file was meant for the start before; while ranks are started
// again, or where it is newer than the program's start, it is meant for this
// one.
void remove_stop_of_before(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  if (error || written >= kProgramStart) return;
  fs::remove(file, error);
  if (error)
    throw CheckpointError(
        "[run] {}: cannot be removed: {}. Hint: remove it; it asks each run in "
        "this folder to stop",
        file.string(), error.message());
  log_info(file.string() +
           " was there before this start, and is removed; touch it again to "
           "stop this run");
}

}  // namespace

fs::path run_folder_of(const Config& config) {
  return config.run.dir.empty() ? fs::path("runs") / config.run.name
                                : fs::path(config.run.dir);
}

namespace {

// A resume may name other tables and images, which nobody has seen yet.
bool has_same_places(const DataConfig& a, const DataConfig& b) {
  const auto places = [](const DataConfig& data) {
    return std::tie(data.manifest.path, data.images, data.train_list,
                    data.val_list, data.test_list, data.exclude,
                    data.finding_names);
  };
  return places(a) == places(b);
}

[[noreturn]] void refuse_no_checkpoint(const fs::path& folder) {
  throw CheckpointError(
      "[run] {}: no checkpoint to resume from. Hint: --resume auto starts "
      "afresh where there never was one",
      folder.string());
}

}  // namespace

// What a folder held before a start made anything in it.
struct RunFolder::Before {
  explicit Before(const fs::path& folder)
      : existed(fs::exists(folder)),
        had_logs(fs::exists(folder / "log") ||
                 fs::exists(folder / "checkpoints")) {}
  bool existed, had_logs;
};

// What a start makes in a folder without a run, while its lock is held; removed
// when it fails. What was there before stays, above all logs of an older start.
// All stays where a post-mortem says what happened, or where another run has
// taken the name since.
class RunFolder::Unclaimed {
 public:
  Unclaimed(fs::path folder, const Before& before)
      : folder_(std::move(folder)), before_(before) {}
  ~Unclaimed() {
    std::error_code ignored;
    if (claimed_ || before_.had_logs ||
        fs::exists(folder_ / "postmortem.json", ignored) ||
        !other_owner(folder_).empty())
      return;
    close_log();
    for (int rank = 0; fs::remove(log_path(folder_, rank), ignored);) ++rank;
    // Without their contents: those of links, and what is not ours.
    for (const char* inner : {"log", "checkpoints"})
      if (!fs::is_symlink(folder_ / inner, ignored))
        fs::remove(folder_ / inner, ignored);
    fs::remove(folder_ / ".lock", ignored);
    if (!before_.existed) fs::remove(folder_, ignored);
  }
  Unclaimed(const Unclaimed&) = delete;
  Unclaimed& operator=(const Unclaimed&) = delete;
  void claim() { claimed_ = true; }

 private:
  fs::path folder_;
  Before before_;
  bool claimed_ = false;
};

int64_t batch_of_run(const Config& config) {
  if (config.train.batch) return *config.train.batch;
  const fs::path file = run_folder_of(config) / "config.yaml";
  std::error_code error;
  if (!fs::exists(file, error)) return 0;
  return load_config({file}, {}).train.batch.value_or(0);
}

RunFolder::RunFolder(const Config& config, Resume resume, Communicator& comm)
    : path_(run_folder_of(config)),
      timeout_s_(config.launch.timeout_s),
      has_command_(!config.run.after_checkpoint.empty()) {
  hide_from_others();
  if (comm.rank() == 0) {
    const StorageWait wait(timeout_s_,
                           "taking the run folder " + path_.string());
    prepare(config, resume);
  }
  const std::string from =
      broadcast_text(comm, checkpoint_ ? checkpoint_->string() : "");
  if (!from.empty()) checkpoint_ = from;
  batch_ = broadcast_value(comm, batch_);
  has_seen_data_ = any_rank(comm, has_seen_data_);
  set_log_file(log_path(path_, comm.rank()).string());
  comm.barrier();  // rank 0 may fail next, and take the folder of logs away
}

RunFolder::~RunFolder() = default;

void RunFolder::prepare(const Config& config, Resume resume) {
  const Before before_us(path_);
  check_may_hold_run(path_);
  create(path_, path_);
  require_trusted_folder(path_);
  for (const char* inner : {"log", "checkpoints"})
    require_trusted_folder(path_ / inner);
  create(path_ / "log", path_);
  // Ranks that our parent starts again may meet the former rank 0, still dying.
  const bool restarted = restarts_by_parent(process_environment()) > 0;
  constexpr double kTimeout_s = 30;
  lock_ = std::make_unique<RunLock>(path_, restarted ? kTimeout_s : 0);
  remove_left_partials(path_);
  AfterCheckpoint::remove_left_views(path_);
  forget_waiting_run(path_);
  const bool used = fs::exists(path_ / "config.yaml");
  if (!used) unclaimed_ = std::make_unique<Unclaimed>(path_, before_us);
  if (used && resume == Resume::kNo) refuse_used_folder(path_);
  store_ = std::make_unique<CheckpointStore>(
      path_ / "checkpoints", static_cast<int>(config.checkpoint.keep));
  if (has_command_)
    after_checkpoint_ =
        std::make_unique<AfterCheckpoint>(config.run.after_checkpoint, path_);
  if (resume != Resume::kNo) {
    checkpoint_ = store_->recover_newest();
    if (!checkpoint_ && resume == Resume::kYes) refuse_no_checkpoint(path_);
    if (!checkpoint_ && used)
      log_warning(path_.string() +
                  " holds a run without a checkpoint: training starts afresh");
  }
  if (checkpoint_) {
    const auto before = load_config({path_ / "config.yaml"}, {});
    batch_ = before.train.batch.value_or(0);
    has_seen_data_ = has_same_places(before.data, config.data);
    refuse_another_config(before, config, path_.string(), "run");
  }
  has_seen_data_ |= restarted;
  put_postmortem_aside(path_);
  if (!restarted) remove_stop_of_before(path_ / "STOP");
}

void refuse_used_folder(const fs::path& folder) {
  throw CheckpointError(
      "[run] {}: holds a run already. Hint: --resume auto continues it, --out "
      "NAME starts another",
      folder.string());
}

void check_takes_run(const Config& config, Resume resume) {
  const fs::path folder = run_folder_of(config);
  if (is_ensemble_folder(folder))
    throw CheckpointError(
        "[run] {}: is an ensemble, which no training goes on with. Hint: "
        "choose another --out",
        folder.string());
  check_may_hold_run(folder);
  const fs::path file = folder / "config.yaml";
  std::error_code error;
  const bool used = fs::exists(file, error);
  const bool is_free = !run_is_locked(folder).value_or(false);
  if (resume == Resume::kNo) {
    if (used && is_free) refuse_used_folder(folder);
    return;
  }
  const bool is_empty = fs::is_empty(folder / "checkpoints", error) || error;
  if (is_empty && is_free && resume == Resume::kYes)
    refuse_no_checkpoint(folder);
  if (used && !is_empty)
    refuse_another_config(load_config({file}, {}), config, folder.string(),
                          "run");
}

void refuse_another_config(const Config& before, const Config& now,
                           const std::string& place, const std::string& whose) {
  const auto conflicts = resume_conflicts(before, now);
  if (conflicts.empty()) return;
  std::string text;
  for (const auto& line : conflicts) text += "\n  " + line;
  throw ConfigError(
      "[run] {}: the config differs from the {}'s:{}\nHint: resume with the "
      "old values, or start a new run with --out",
      place, whose, text);
}

void RunFolder::claim(const Config& config) const {
  write_atomically(path_ / "config.yaml", config_yaml(config));
  if (unclaimed_) unclaimed_->claim();
}

void RunFolder::checkpoint_written() {
  if (after_checkpoint_) after_checkpoint_->due();
}

void RunFolder::finish_commands(
    Communicator& comm, const std::function<bool(double waited_s)>& may_wait) {
  if (!has_command_) return;
  std::function<void(WorkProgress&)> work;
  if (after_checkpoint_)
    work = [&](WorkProgress& progress) {
      after_checkpoint_->finish([&](double waited_s) {
        progress.advance();
        return may_wait(waited_s);
      });
    };
  share_work(comm, {"waiting for run.after_checkpoint", timeout_s_}, work);
  if (const auto failed = failed_commands(); failed > 0)
    log_warning("[run] run.after_checkpoint failed " +
                counted(*failed, "time") +
                ": what it copies may not be whole. Hint: run it by hand, on " +
                path_.string());
}

std::optional<int64_t> RunFolder::failed_commands() const {
  if (!after_checkpoint_) return std::nullopt;
  return after_checkpoint_->failures();
}

bool RunFolder::stop_file_exists() const {
  std::error_code error;
  return fs::exists(path_ / "STOP", error);
}

}  // namespace chexnet
