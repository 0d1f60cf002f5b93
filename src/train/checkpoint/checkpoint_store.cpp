#include "chexnet/train/checkpoint/checkpoint_store.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint_name.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/write_hint.hpp"
#include "described_files.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// A save, and what a crash after each of its steps leaves:
//
//   .step-00000007.tmp/ with files   removed at the next start
//   .step-00000007.tmp/state.json    the same: the name says that it is not
//                                    done
//   step-00000007/                   whole; fsync of files and folder came
//                                    before the rename
//   last -> step-00000007            mended by recover_newest()
//   older folders removed            done at the next save
//
// So step-N/ is whole unless the disk or a person changed it, which the
// checksums of its state.json tell.

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) refused(folder, error, "check the permissions of the run folder");
  return names;
}

std::vector<fs::path> steps_newest_first(const fs::path& folder) {
  std::map<int64_t, fs::path, std::greater<>> steps;
  for (const auto& name : names_in(folder))
    if (const auto step = checkpoint_step(name))
      steps.emplace(*step, folder / name);
  std::vector<fs::path> paths;
  for (auto& [step, path] : steps) paths.push_back(std::move(path));
  return paths;
}

void move_aside(const fs::path& path) {
  fs::path to = path;
  for (int i = 1;; ++i) {
    to.replace_filename(path.filename().string() + ".broken-" +
                        std::to_string(i));
    if (!is_there(to)) break;
  }
  std::error_code error;
  fs::rename(path, to, error);
  if (error) refused(path, error, "check the permissions of the run folder");
  log_warning("[checkpoint] " + path.string() + " is broken and was moved to " +
              to.string());
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  assert(keep_ >= 1);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) refused(folder_, error, "is the run folder writable?");
}

// Only files that state.json names are checked: file systems leave others
// (.nfs…).
std::string CheckpointStore::problem(const fs::path& checkpoint,
                                     const std::string& only) {
  const fs::path described = checkpoint / "state.json";
  if (!is_there(described)) return "state.json is missing";
  if (!fs::is_regular_file(described)) return "state.json is no regular file";
  std::string state = read_state(checkpoint);
  try {
    while (true) {
      std::string wrong =
          has_own_sum(state)
              ? first_difference(checkpoint, state, only)
              : "state.json: its own checksum is absent or wrong";
      if (wrong.empty()) return {};
      // A run may have replaced a file after its state was read.
      std::string now = read_state(checkpoint);
      if (now == state) return wrong;
      state = std::move(now);
    }
  } catch (const nlohmann::json::exception& e) {
    return std::string("state.json: ") + e.what();
  } catch (const std::out_of_range& e) {
    return std::string("state.json: ") + e.what();
  } catch (const fs::filesystem_error& e) {
    refused(checkpoint, e.code(), "check the permissions of the run folder");
  } catch (const AbsentError& e) {
    throw CheckpointError(e.what());
  }
}

std::string CheckpointStore::read_state(const fs::path& checkpoint) {
  try {
    return read_text(checkpoint / "state.json");
  } catch (const OutageError&) {
    throw;
  } catch (const Error& e) {
    throw CheckpointError(e.what());
  }
}

void CheckpointStore::save(
    int64_t step, const std::string& state,
    const std::function<void(const fs::path&)>& write_files) {
  const std::string name = checkpoint_name(step);
  const fs::path final_folder = folder_ / name,
                 partial = folder_ / ("." + name + ".tmp");
  if (is_there(final_folder) && !problem(final_folder).empty())
    move_aside(final_folder);
  if (is_there(final_folder)) {
    replace_state(step, state);
  } else {
    try {
      fs::remove_all(partial);
      fs::create_directory(partial);
      write_files(partial);
      OutputFile out(partial / "state.json");
      out.write(with_files(state, partial));
      out.commit();
      sync_folder(partial);
      fs::rename(partial, final_folder);
      sync_folder(folder_);
    } catch (const fs::filesystem_error& e) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      refused(final_folder, e.code(),
              "the earlier checkpoints are untouched; " +
                  write_hint(e.code().value(), "--out"));
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      throw;
    }
  }
  point("last", name);
  remove_old();
}

void CheckpointStore::replace_state(int64_t step, const std::string& state) {
  const fs::path folder = folder_ / checkpoint_name(step);
  write_atomically(folder / "state.json",
                   with_files_of(state, read_state(folder)));
}

void CheckpointStore::replace_file(
    int64_t step, const std::string& name,
    const std::function<void(const fs::path&)>& write) {
  replace_described_file(folder_ / checkpoint_name(step), name, write);
}

void CheckpointStore::mark_best(int64_t step) {
  point("best", checkpoint_name(step));
  remove_old();
}

bool CheckpointStore::has_whole(int64_t step) const {
  const fs::path folder = folder_ / checkpoint_name(step);
  return is_there(folder) && problem(folder).empty();
}

void CheckpointStore::point(const char* link, const std::string& target) const {
  // A new link and a rename: a reader finds the old target or the new one,
  // never none.
  const fs::path path = folder_ / link,
                 partial = folder_ / ("." + std::string(link) + ".tmp");
  std::error_code error;
  if (fs::read_symlink(path, error) == target) return;
  fs::remove(partial, error);
  fs::create_symlink(target, partial, error);
  if (error)
    refused(path, error,
            "a run folder needs a file system with symbolic links and free "
            "inodes: choose another "
            "with --out; the checkpoint " +
                target + " itself is written");
  fs::rename(partial, path, error);
  if (error) refused(path, error, "check the permissions of the run folder");
  sync_folder(folder_);
}

// Errors are passed over: an old checkpoint that stays costs space and nothing
// else.
void CheckpointStore::remove_old() const {
  std::error_code error;
  const auto best = fs::read_symlink(folder_ / "best", error).filename();
  int kept = 0;
  for (const auto& step : steps_newest_first(folder_))
    if (++kept > keep_ && step.filename() != best) fs::remove_all(step, error);
}

std::optional<fs::path> CheckpointStore::recover_newest() {
  const auto names = names_in(folder_);
  for (const auto& name : names) {
    std::error_code error;
    if (name.starts_with(".step-"))
      fs::remove_all(folder_ / name, error);  // was cut short
  }
  std::vector<fs::path> broken;
  for (const auto& step : steps_newest_first(folder_)) {
    const std::string wrong = problem(step);
    if (wrong.empty()) {
      for (const auto& path : broken) move_aside(path);
      remove_left_partials(step);
      // A crash between a checkpoint and its link.
      point("last", step.filename().string());
      return step;
    }
    log_warning("[checkpoint] " + step.string() + ": " + wrong);
    broken.push_back(step);
  }
  // Also those that were moved aside.
  const auto is_step = [](const std::string& name) {
    return checkpoint_step(name.substr(0, name.find('.'))).has_value();
  };
  const auto count = std::ranges::count_if(names, is_step);
  if (count == 0) return std::nullopt;
  throw CheckpointError(
      "[checkpoint] {}: none of the checkpoints here ({}) is whole; nothing "
      "was changed. Hint: is the file system mounted and whole? Restore a "
      "checkpoint from a backup, or start a new run with --out",
      folder_.string(), count);
}

namespace {

// Of an ensemble, which has SHA256SUMS instead of a state.
void check_sum_beside(const fs::path& model) {
  const fs::path sums = model.parent_path() / "SHA256SUMS";
  if (!is_there(sums)) return;
  const std::string line = "  " + model.filename().string() + "\n";
  const std::string text = read_text(sums);
  const size_t at = text.find(line);
  if (at != std::string::npos &&
      text.substr(0, at).ends_with(sha256_file(model.string())))
    return;
  throw CheckpointError(
      "[checkpoint] {}: is not the file that SHA256SUMS names. Hint: make the "
      "ensemble anew, or remove SHA256SUMS where the model was changed on "
      "purpose",
      model.string());
}

}  // namespace

fs::path resolve_model(const fs::path& named) {
  constexpr const char* kModel = "model.safetensors";
  if (fs::is_regular_file(named) && named.filename() != kModel)
    return fs::canonical(named);
  const fs::path folder =
      named.filename() == kModel ? named.parent_path() : named;
  for (const auto& candidate : {folder, folder / "checkpoints" / "best",
                                folder / "checkpoints" / "last"}) {
    if (!is_there(candidate / kModel)) continue;
    if (is_there(candidate / "state.json")) {
      const std::string wrong = CheckpointStore::problem(candidate, kModel);
      if (!wrong.empty())
        throw CheckpointError(
            "[checkpoint] {}: {}. Hint: choose another checkpoint of that run",
            candidate.string(), wrong);
    }
    check_sum_beside(candidate / kModel);
    return fs::canonical(candidate / kModel);
  }
  throw CheckpointError(
      "[checkpoint] {}: no checkpoint here. Hint: name a run folder, "
      "runs/<name>/checkpoints/step-… or a model's .safetensors file; of "
      "several "
      "runs `chexnet-train ensemble` makes one",
      named.string());
}

}  // namespace chexnet
