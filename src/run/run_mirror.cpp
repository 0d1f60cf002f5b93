// What the place holds behind each step of sending a checkpoint, so that
// readers and kill -9 find it whole or not at all:
//
//   its files                 no state.json: it is no checkpoint yet
//   state.json                it is one
//   last, best                name it
//   older ones removed        their state.json first
//
// Of one that was sent before, and has a file with another content now
// (CheckpointStore::replace_file), state.json first names both contents.
#include "chexnet/run/run_mirror.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "chexnet/checkpoint/store.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/write_hint.hpp"
#include "chexnet/run/remote_lock.hpp"
#include "chexnet/run/remote_run.hpp"
#include "mirrored_files.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr double kInterval_s = 20;  // of records
// What takes long to send is sent less often: a twentieth of the time.
constexpr double kLeastShare = 20;
constexpr const char* kSnapshots = ".sending";

nlohmann::json files_of(const std::string& state) {
  const auto json = nlohmann::json::parse(state, nullptr, false);
  return json.is_object() && json.contains("files") ? json["files"]
                                                    : nlohmann::json::object();
}

}  // namespace

RunMirror::RunMirror(std::unique_ptr<ObjectStore> store, Place place,
                     const Tick& tick)
    : own_store_(std::move(store)),
      store_(*own_store_),
      at_(std::move(place.place)),
      folder_(std::move(place.folder)),
      fetches_(place.fetches) {
  require_no_other_run();
  const auto on_loss = [this](const std::string& by) {
    log_error("[run] " + at_ + ": taken over by " + by +
              " while this run could not be heard; it stops");
    write_atomically(folder_ / "STOP", "");
  };
  const std::string id = own_id(folder_);
  lock_ = std::make_unique<RemoteLock>(store_, at_, id, tick, on_loss);
  try {
    require_no_other_run();  // one may have begun and ended meanwhile
    take_place(tick);
    write_atomically(folder_ / kPlaceId, id);
  } catch (const Error&) {
    free_place();
    throw;
  }
}

void RunMirror::require_no_other_run() {
  has_run_ = store_.exists(at("config.yaml"));
  if (has_run_ && !fetches_)
    throw CheckpointError("[run] " + at_ +
                          ": holds a run already. Hint: --resume auto "
                          "continues it, --out NAME starts another");
}

void RunMirror::take_place(const Tick& tick) {
  try {
    fs::remove_all(folder_ / kSnapshots);
    if (!lock_->was_ours()) {
      fs::remove(folder_ / kPlaceId);  // until all is fetched
      move_aside(folder_);
      if (has_run_)
        fetch_run(store_, at_, folder_, FetchedFiles::kResume, tick);
    }
  } catch (const fs::filesystem_error& e) {
    throw CheckpointError("[run] " + folder_.string() + ": " +
                          e.code().message() +
                          ". Hint: " + write_hint(e.code().value(), "TMPDIR"));
  }
  store_.abort_uploads(at_, is_file_of_run);
  if (has_run_) read_sent_checkpoints(tick);
}

// What a run before this one left there.
void RunMirror::read_sent_checkpoints(const Tick& tick) {
  std::vector<StoredFile> found;
  try {
    found = store_.list(at("checkpoints"), tick);
  } catch (const AbsentError&) {
    return;
  }
  for (const auto& file : found) {
    const auto part = step_file(file.path.substr(at("").size()));
    if (!part) continue;
    std::string& state = sent_steps_[part->step];
    if (part->file == "state.json")
      state = store_.read_versioned(file.path).text;
  }
}

RunMirror::~RunMirror() {
  thread_ = {};
  std::error_code ignored;
  fs::remove_all(folder_ / kSnapshots, ignored);
  if (begun_) return;  // a run that failed: its process is gone in a moment
  free_place();
  if (!has_run_) fs::remove(folder_ / kPlaceId, ignored);
}

// A start that failed leaves nothing there.
void RunMirror::free_place() {
  try {
    has_run_ ? lock_->release() : lock_->remove();
  } catch (const Error& e) {
    log_warning(e.what());
  }
}

void RunMirror::begin() {
  begun_ = true;
  checkpoints_changed();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void RunMirror::checkpoints_changed() {
  auto next = std::make_unique<Snapshot>();
  next->folder = folder_ / kSnapshots / std::to_string(++snapshots_);
  const fs::path from = folder_ / "checkpoints";
  try {
    next->links = link_checkpoints(from, next->folder);
  } catch (const fs::filesystem_error& e) {
    log_warning("[run] " + from.string() + ": " + e.code().message() +
                ": this checkpoint is sent with the next one");
    std::error_code ignored;
    fs::remove_all(next->folder, ignored);
    return;
  }
  const std::lock_guard lock(mutex_);
  std::swap(pending_, next);
  if (next) fs::remove_all(next->folder);
  changed_.notify_all();
}

// Records go first: config.yaml makes a run of the place, and what a resume
// reads of metrics.jsonl reaches as far as the checkpoint.
void RunMirror::run(const std::stop_token& stop) {
  double wait_s = 0;
  bool failed = false;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, std::chrono::duration<double>(wait_s),
                        [&] { return pending_ != nullptr && !failed; });
    }
    if (stop.stop_requested()) return;
    const double start_s = now_s();
    try {
      send_records(stop, [] {});
      send_snapshot(stop, [] {});
      failed = false;
    } catch (const std::exception& e) {
      if (!failed && !stop.stop_requested())
        log_warning(std::string(e.what()) +
                    "; the run goes on, and this is tried again");
      failed = true;
    }
    wait_s = std::max(kInterval_s, kLeastShare * (now_s() - start_s));
  }
}

void RunMirror::send_snapshot(const std::stop_token& stop, const Tick& tick) {
  std::unique_ptr<Snapshot> snapshot;
  {
    const std::lock_guard lock(mutex_);
    snapshot = std::move(pending_);
  }
  if (!snapshot) return;
  try {
    require_ours();
    std::vector<fs::path> steps;
    for (const auto& step : fs::directory_iterator(snapshot->folder))
      steps.push_back(step.path());
    std::ranges::sort(steps);
    for (const auto& step : steps) send_step(step, stop, tick);
    for (const auto& [link, step] : snapshot->links) {
      if (sent_links_[link] == step) continue;
      store_.put(at("checkpoints/" + link), step, {}, stop);
      sent_links_[link] = step;
    }
    if (!steps.empty()) remove_old_steps(*snapshot, tick);
    fs::remove_all(snapshot->folder);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!pending_) pending_ = std::move(snapshot);
    throw;
  }
}

void RunMirror::send_step(const fs::path& step, const std::stop_token& stop,
                          const Tick& tick) {
  const std::string name = step.filename().string(),
                    state = read_text(step / "state.json");
  const std::string to = at("checkpoints/" + name + "/");
  const auto before = sent_steps_.find(name);
  const std::string sent = before == sent_steps_.end() ? "" : before->second;
  if (sent == state) return;
  const auto old_files = files_of(sent), files = files_of(state);
  std::vector<std::string> changed;
  for (const auto& [file, said] : files.items())
    if (!old_files.contains(file) || old_files[file] != said)
      changed.push_back(file);
  if (!sent.empty() && !changed.empty()) {
    const std::string between = CheckpointStore::state_between(sent, state);
    if (between.empty())
      store_.remove(to + "state.json");
    else
      store_.put(to + "state.json", between, {}, stop);
    sent_steps_[name] = between;
  }
  for (const auto& file : changed) {
    store_.put_file(to + file, step / file, stop);
    tick();
  }
  store_.put(to + "state.json", state, {}, stop);
  sent_steps_[name] = state;
}

void RunMirror::remove_old_steps(const Snapshot& snapshot, const Tick& tick) {
  for (auto it = sent_steps_.begin(); it != sent_steps_.end();) {
    if (fs::exists(snapshot.folder / it->first)) {
      ++it;
      continue;
    }
    const std::string step = at("checkpoints/" + it->first);
    store_.remove(step + "/state.json");
    try {
      for (const auto& file : store_.list(step, tick)) {
        store_.remove(file.path);
        tick();
      }
    } catch (const AbsentError&) {  // it had no more
    }
    it = sent_steps_.erase(it);
  }
}

void RunMirror::send_records(const std::stop_token& stop, const Tick& tick) {
  require_ours();
  for (const auto& [name, change] : records_in(folder_)) {
    if (sent_records_[name] == change) continue;
    store_.put_file(at(name), folder_ / name, stop);
    sent_records_[name] = change;
    tick();
  }
}

void RunMirror::require_ours() {
  if (const std::string other = lock_->taken_by(); !other.empty())
    throw CheckpointError("[run] " + at_ + ": taken over by " + other +
                          ", so nothing more is sent there. Hint: stop one of "
                          "the two runs");
}

void RunMirror::finish(const Tick& tick) {
  if (!begun_ && !has_run_) return;  // stopped before it was a run
  thread_ = {};
  checkpoints_changed();
  try {
    store_.abort_uploads(at_, is_file_of_run);  // of the thread
    send_records({}, tick);
    send_snapshot({}, tick);
    lock_->release();
  } catch (const std::exception& e) {
    throw CheckpointError("[run] " + at_ +
                          ": not all of the run could be stored there; it is "
                          "whole in " +
                          folder_.string() + ". The reason: " + e.what() +
                          ". Then the same command with --resume auto on this "
                          "machine sends the rest");
  }
  fs::remove_all(folder_ / kSnapshots);
}

}  // namespace chexnet
