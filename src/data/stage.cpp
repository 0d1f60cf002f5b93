// One rank of each node copies while the others wait; progress of any of them
// counts as life. What is local here may be remote on another node, so all
// ranks take part even when nothing is to be done. Another job of the same user
// is waited for: it may be making the same copy.
#include "chexnet/data/stage.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/file_lock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/safe_open.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "staged_copy.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// In a shared folder each user has a separate folder.
fs::path root_in(const std::string& folder) {
  return fs::path(folder) / ("chexnet-stage-" + std::to_string(::geteuid()));
}

double last_change_s(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  return error ? 0
               : std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Two jobs of a user on one node wait for each other; that the other goes on
// counts as progress.
FileLock take_turn(const fs::path& root, const Tick& tick, Progress& show) {
  const fs::path path = root / "lock";
  double changed_s = 0;
  for (;;) {
    if (auto lock = FileLock::try_take(path)) return std::move(*lock);
    show.show("staging: waiting for another job of yours on this node");
    if (const double now = last_change_s(path); now != changed_s) {
      changed_s = now;
      tick();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void need_room(const std::string& folder, uint64_t missing) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return;
  const uint64_t free = uint64_t{space.f_bavail} * space.f_frsize;
  if (missing + missing / 50 <= free) return;
  throw DataError(
      "[stage] {} has {} free, the data needs {}. Hint: choose another "
      "data.stage, or off",
      folder, readable_bytes(static_cast<double>(free)),
      readable_bytes(static_cast<double>(missing)));
}

// Copies what is not there yet.
void fill(const std::vector<Container>& wanted, const std::string& folder,
          Stores& stores, bool shows, const Tick& tick) {
  Progress progress(shows);
  const fs::path root = root_in(folder);
  fs::create_directories(folder);
  make_private_folder(root);
  const FileLock lock = take_turn(root, tick, progress);
  const auto goes_on = [&] {
    lock.keep_alive();
    tick();
  };
  std::vector<StagedCopy> copies;
  uint64_t missing = 0, done = 0, new_files = 0;
  for (const Container& c : wanted) {
    StagedCopy& copy = copies.emplace_back(root, c);
    const uint64_t to_copy = copy.check([&] {
      progress.show("staging: checking what is there");
      goes_on();
    });
    missing += to_copy;
    new_files += to_copy > 0 ? 1 : 0;
  }
  need_room(folder, missing);
  const double start = now_s();
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string name = fs::path(wanted[i].path).filename().string();
    copies[i].complete(stores.of(wanted[i].path), [&](uint64_t bytes) {
      done += bytes;
      const double share =
          static_cast<double>(done) / static_cast<double>(missing);
      progress.show(
          "staging: " + percent_and_time_left(share, now_s() - start) + " of " +
          readable_bytes(static_cast<double>(missing)) + ", " + name);
      goes_on();
    });
  }
  progress.clear();
  if (shows)
    log_info("stage: " + counted(static_cast<int64_t>(new_files), "file") +
             " (" + readable_bytes(static_cast<double>(missing)) +
             ") copied to " + folder + ", " +
             std::to_string(wanted.size() - new_files) + " were there");
}

// Why this node cannot stage.
struct Refusal {
  ExitCode code = ExitCode::kDone;
  std::string text;
};

Refusal refusal_of(const Error& e) {
  // The folder cannot be written: data.stage names it, so the error is not one
  // of checkpoints.
  return {e.code() == ExitCode::kCheckpoint ? ExitCode::kData : e.code(),
          e.what()};
}

// The first of any node; all ranks call.
Refusal first_refusal(Communicator& comm, const Refusal& own) {
  const std::string line =
      std::to_string(static_cast<int>(own.code)) + " " + own.text;
  for (const auto& text : gather_text(comm, line)) {
    const auto code = static_cast<ExitCode>(std::stoi(text));
    if (code != ExitCode::kDone) return {code, text.substr(text.find(' ') + 1)};
  }
  return {};
}

// The first of $SLURM_TMPDIR, $TMPDIR and /tmp that is on a disk of this node.
std::string node_folder() {
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"})
    if (const char* value = std::getenv(name);
        value != nullptr && *value != '\0')
      if (!on_network_file_system(value)) return value;
  return "/tmp";
}

}  // namespace

ImageIndex staged(ImageIndex index, const StageOptions& options, Stores& stores,
                  Communicator& comm) {
  using Kind = StageChoice::Kind;
  if (options.where.kind == Kind::kOff) return index;
  const bool automatic = options.where.kind == Kind::kAuto;
  const std::string folder = automatic ? node_folder() : options.where.folder;
  std::vector<Container> wanted;
  size_t single_files = 0;
  for (const auto& c : index.containers()) {
    if (c.kind == ContainerKind::kFile)
      ++single_files;
    else if (!automatic || is_remote(c.path))
      wanted.push_back(c);
  }
  if (single_files > 0 && !automatic && comm.rank() == 0)
    log_warning("stage: " + std::to_string(single_files) +
                " images are files of their own and stay where they are; pack "
                "them first");

  Refusal refusal;
  const auto copy = [&](WorkProgress& progress) {
    try {
      fill(wanted, folder, stores, comm.rank() == 0,
           [&] { progress.advance(); });
    } catch (const Error& e) {
      refusal = refusal_of(e);
    } catch (const std::exception& e) {
      refusal = {ExitCode::kData,
                 "[stage] " + folder + ": " + e.what() +
                     ". Hint: choose another data.stage, or off"};
    }
  };
  using Work = std::function<void(WorkProgress&)>;
  // What is local on one node may be remote on another, so all take part.
  const bool leads = comm.world().local_rank == 0 && !wanted.empty();
  if (!share_work(comm, {"staging the data", options.timeout_s, options.stop},
                  leads ? Work(copy) : Work()))
    throw WorkStopped();
  if (const Refusal first = first_refusal(comm, refusal);
      first.code != ExitCode::kDone) {
    if (!automatic && first.code == ExitCode::kData)
      throw DataError(first.text);
    if (!automatic) throw Error(first.code, first.text);
    if (comm.rank() == 0)
      log_warning(first.text + "; reading from where the data is");
    return index;
  }
  // Every rank of a node knows the folder by itself.
  for (const Container& c : wanted)
    index.move_container(c.path,
                         StagedCopy(root_in(folder), c).path().string());
  return index;
}

}  // namespace chexnet
