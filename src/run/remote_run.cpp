// What comes from an object store is a stranger's: names that would leave the
// folder are passed over, sizes are those of the listing, and a checkpoint
// counts only when its files have the sums that its state.json names.
#include "chexnet/run/remote_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "chexnet/checkpoint/checkpoint_name.hpp"
#include "chexnet/checkpoint/store.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/write_hint.hpp"
#include "chexnet/data/stage.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kCheckpoints = "checkpoints/";
constexpr uint64_t kPiece = uint64_t{16} << 20;

// Of a key below the place, and of s3://bucket/prefix without "s3://".
bool is_plain_path(std::string_view path) {
  if (path.empty()) return false;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end == at || path[at] == '.' || end - at > NAME_MAX) return false;
    at = end + 1;
  }
  return path.find('\0') == std::string_view::npos;
}

// What a run at a place consists of, by names below it.
struct Contents {
  std::map<std::string, StoredFile> records;
  std::map<std::string, std::map<std::string, StoredFile>> steps;  // by name
};

Contents contents_of(Store& store, const std::string& place, const Tick& tick) {
  Contents found;
  for (const auto& file : store.list(place, tick)) {
    const std::string name =
        file.path.substr(std::min(file.path.size(), place.size() + 1));
    if (!is_plain_path(name) || name == "run.lock") continue;
    if (!name.starts_with(kCheckpoints)) {
      // Of a run below this place.
      if (name.find("/checkpoints/") == std::string::npos)
        found.records[name] = file;
      continue;
    }
    const std::string inner = name.substr(kCheckpoints.size());
    const size_t slash = inner.find('/');
    if (slash == std::string::npos || inner.find('/', slash + 1) != inner.npos)
      continue;
    if (checkpoint_step(inner.substr(0, slash)))
      found.steps[inner.substr(0, slash)][inner.substr(slash + 1)] = file;
  }
  return found;
}

void fetch_file(Store& store, const StoredFile& file, const fs::path& to,
                const Tick& tick) {
  fs::create_directories(to.parent_path());
  OutputFile out(to);
  std::vector<std::byte> piece;
  for (uint64_t at = 0; at < file.size; at += piece.size()) {
    store.read(file.path, at, std::min(kPiece, file.size - at), piece);
    if (piece.empty())
      throw DataError("[run] " + file.path +
                      ": became shorter while it was read. Hint: does a run "
                      "write there?");
    out.write(piece);
    tick();
  }
  out.commit();
}

// The name that checkpoints/best or /last holds; empty when it holds none.
std::string pointed(Store& store, const std::string& place, const char* link) {
  std::vector<std::byte> text;
  try {
    store.read_whole(place + "/checkpoints/" + link, text);
  } catch (const AbsentError&) {
    return {};
  }
  const std::string name(reinterpret_cast<const char*>(text.data()),
                         text.size());
  return checkpoint_step(name) ? name : std::string();
}

// Empty when it came whole, else what is wrong.
std::string fetch_step(Store& store,
                       const std::map<std::string, StoredFile>& files,
                       const fs::path& to, const std::string& only,
                       const Tick& tick) {
  std::error_code ignored;
  fs::remove_all(to, ignored);
  if (!files.contains("state.json")) return "state.json is missing";
  for (const auto& [name, file] : files)
    if (only.empty() || name == only || name == "state.json")
      fetch_file(store, file, to / name, tick);
  return CheckpointStore::problem(to, only);
}

// One after the other until one is whole. A run may have replaced what the
// listing named, so each is looked at twice.
void fetch_newest_whole(Store& store, const std::string& place,
                        const std::vector<std::string>& steps,
                        const fs::path& folder, const std::string& only,
                        const Tick& tick) {
  if (steps.empty()) return;
  const size_t count = steps.size();
  for (const auto& step : steps) {
    std::string wrong;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const Contents now = contents_of(store, place, tick);
      const auto found = now.steps.find(step);
      if (found == now.steps.end()) {
        wrong = "is gone";
        break;
      }
      const fs::path partial = folder / "checkpoints" / ("." + step + ".tmp");
      wrong = fetch_step(store, found->second, partial, only, tick);
      if (wrong.empty()) {
        fs::rename(partial, folder / "checkpoints" / step);
        return;
      }
      fs::remove_all(partial);
    }
    log_warning("[run] " + place + "/checkpoints/" + step + ": " + wrong);
  }
  throw CheckpointError("[run] " + place + ": none of its checkpoints (" +
                        std::to_string(count) +
                        ") is whole. Hint: restore one, or start a new run "
                        "with --out");
}

void link_to(const fs::path& folder, const char* link,
             const std::string& step) {
  if (fs::exists(folder / "checkpoints" / step))
    fs::create_symlink(step, folder / "checkpoints" / link);
}

void fetch_checkpoints(Store& store, const std::string& place,
                       const Contents& contents, const fs::path& folder,
                       FetchedFiles files, const Tick& tick) {
  std::vector<std::string> steps;
  for (const auto& [step, parts] : contents.steps)
    if (parts.contains("state.json")) steps.insert(steps.begin(), step);
  const std::string best = pointed(store, place, "best");
  const bool has_best = std::ranges::find(steps, best) != steps.end();
  fs::create_directories(folder / "checkpoints");
  if (files == FetchedFiles::kModel) {
    if (has_best) steps = {best};
    fetch_newest_whole(store, place, steps, folder, "model.safetensors", tick);
    for (const auto& entry : fs::directory_iterator(folder / "checkpoints"))
      link_to(folder, "best", entry.path().filename().string());
    return;
  }
  fetch_newest_whole(store, place, steps, folder, "", tick);
  if (!has_best) return;
  if (!fs::exists(folder / "checkpoints" / best)) {
    const std::string wrong =
        fetch_step(store, contents.steps.at(best),
                   folder / "checkpoints" / ("." + best + ".tmp"), "", tick);
    if (!wrong.empty()) return;  // the resume says that it is gone
    fs::rename(folder / "checkpoints" / ("." + best + ".tmp"),
               folder / "checkpoints" / best);
  }
  link_to(folder, "best", best);
}

}  // namespace

fs::path working_folder(const std::string& place) {
  const std::string path = place.substr(std::string_view("s3://").size());
  if (!is_plain_path(path) || path.find('/') == std::string::npos)
    throw ConfigError("[run] " + place +
                      " is no place of a run. Hint: s3://bucket/prefix, "
                      "without a slash at its end, and no name in it empty or "
                      "with a dot in front");
  return fs::path(node_folder()) /
         ("chexnet-runs-" + std::to_string(::geteuid())) / path;
}

void make_working_folder(const fs::path& folder) {
  const std::string root = "chexnet-runs-" + std::to_string(::geteuid());
  fs::path made;
  bool is_below = false;
  for (const auto& part : folder) {
    made /= part;
    is_below |= part == root;
    if (is_below) make_private_folder(made);
  }
}

void fetch_run(Store& store, const std::string& place, const fs::path& folder,
               FetchedFiles files, const Tick& tick) {
  const Contents contents = contents_of(store, place, tick);
  try {
    for (const auto& [name, file] : contents.records)
      if (files != FetchedFiles::kModel || name.find('/') == std::string::npos)
        fetch_file(store, file, folder / name, tick);
    if (files != FetchedFiles::kRecords)
      fetch_checkpoints(store, place, contents, folder, files, tick);
  } catch (const fs::filesystem_error& e) {
    throw CheckpointError("[run] " + folder.string() + ": " +
                          e.code().message() +
                          ". Hint: " + write_hint(e.code().value(), "TMPDIR"));
  }
}

}  // namespace chexnet
