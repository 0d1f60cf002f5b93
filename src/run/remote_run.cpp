// What comes from an object store is a stranger's: names that would leave the
// folder are passed over, sizes are those of the listing, and a checkpoint
// counts only when its files have the sums that its state.json names.
#include "chexnet/run/remote_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "chexnet/checkpoint/checkpoint_name.hpp"
#include "chexnet/checkpoint/store.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/core/write_hint.hpp"
#include "chexnet/data/stage.hpp"
#include "mirrored_files.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

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

// A name that a run has for its own files, so that a place of that name could
// be inside another run.
bool is_name_in_run(const std::string& name) {
  return name == "log" || name == "examples" || name == "checkpoints" ||
         checkpoint_step(name).has_value();
}

// One name for a whole place, so that no run's folder is inside another's. No
// two places have the same: '+' and '%' mean what this put there, and "%-"
// comes before a sum alone.
std::string folder_name(const std::string& path) {
  std::string name;
  for (const char c : path) {
    switch (c) {
      case '/':
        name += '+';
        break;
      case '+':
        name += "%2B";
        break;
      case '%':
        name += "%25";
        break;
      default:
        name += c;
    }
  }
  constexpr size_t kLongest =
      NAME_MAX - std::string_view(".before-1000").size();
  if (name.size() <= kLongest) return name;
  const std::string sum = "%-" + sha256_hex(path).substr(0, 32);
  return std::string(first_bytes(name, kLongest - sum.size())) + sum;
}

using Files = std::map<std::string, StoredFile>;  // by name below a place

Files files_below(Store& store, const std::string& place, const Tick& tick) {
  Files found;
  for (const auto& file : store.list(place, tick)) {
    const std::string name =
        file.path.substr(std::min(file.path.size(), place.size() + 1));
    if (is_plain_path(name)) found[name] = file;
  }
  return found;
}

// What a run at a place consists of.
struct Contents {
  Files records;
  std::map<std::string, Files> steps;  // by name
};

Contents contents_of(const Files& files) {
  Contents found;
  for (const auto& [name, file] : files) {
    if (is_record(name)) found.records[name] = file;
    if (const auto part = step_file(name))
      found.steps[part->step][part->file] = file;
  }
  return found;
}

// Of the runs directly below a place that is none.
Files records_of_runs(const Files& files) {
  Files found;
  for (const auto& [name, file] : files) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos ||
        !files.contains(name.substr(0, slash) + "/config.yaml"))
      continue;
    if (is_record(name.substr(slash + 1))) found[name] = file;
  }
  return found;
}

// Of 2026-11-21T09:00:00.000Z; nothing where a server says it in another way.
std::optional<fs::file_time_type> time_of(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2u:%2u:%2u", &year, &month, &day,
                  &hour, &minute, &second) != 6)
    return std::nullopt;
  namespace chrono = std::chrono;
  const chrono::year_month_day date{chrono::year(year), chrono::month(month),
                                    chrono::day(day)};
  constexpr int kFirst = 1970, kLast = 2200;  // that a file may have
  if (!date.ok() || year < kFirst || year > kLast) return std::nullopt;
  return chrono::file_clock::from_sys(
      chrono::sys_days(date) + chrono::hours(hour) + chrono::minutes(minute) +
      chrono::seconds(second));
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
  // How long a run has been silent is asked of its files.
  if (const auto time = time_of(file.modified)) fs::last_write_time(to, *time);
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
      const Contents now = contents_of(files_below(store, place, tick));
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

// Of each run whose records were fetched state.json of its newest checkpoint,
// for who asks how far it is saved.
void fetch_newest_states(Store& store, const Files& files, const Files& records,
                         const fs::path& folder, const Tick& tick) {
  std::map<std::string, std::pair<std::string, StoredFile>> newest;  // by run
  for (const auto& [name, file] : files) {
    const size_t own = std::min(name.find("checkpoints/"), name.size());
    const std::string run = name.substr(0, own);
    const auto part = step_file(name.substr(own));
    if (part && part->file == "state.json" &&
        records.contains(run + "config.yaml"))
      newest[run] = {part->step, file};  // names are in the order of steps
  }
  for (const auto& [run, state] : newest) {
    const auto& [step, file] = state;
    fetch_file(store, file, folder / run / "checkpoints" / step / "state.json",
               tick);
    link_to(folder / run, "last", step);
  }
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
  const std::string last = path.substr(path.rfind('/') + 1);
  if (is_name_in_run(last))
    throw ConfigError("[run] " + place +
                      " is no place of a run: runs keep "
                      "files of their own under the name " +
                      last + ". Hint: choose another name with --out");
  return fs::path(node_folder()) /
         ("chexnet-runs-" + std::to_string(::geteuid())) / folder_name(path);
}

void make_working_folder(const fs::path& folder) {
  make_private_folder(folder.parent_path());
  make_private_folder(folder);
}

void fetch_run(Store& store, const std::string& place, const fs::path& folder,
               FetchedFiles files, const Tick& tick) {
  const Files found = files_below(store, place, tick);
  Contents contents = contents_of(found);
  if (files == FetchedFiles::kRecords &&
      !contents.records.contains("config.yaml")) {
    contents.records = records_of_runs(found);
    if (contents.records.empty())
      throw CheckpointError("[run] " + place +
                            ": neither a run (no config.yaml) nor a folder of "
                            "runs. Hint: name a place like s3://bucket/NAME");
  }
  try {
    for (const auto& [name, file] : contents.records)
      if (files != FetchedFiles::kModel || name.find('/') == std::string::npos)
        fetch_file(store, file, folder / name, tick);
    if (files == FetchedFiles::kRecords)
      fetch_newest_states(store, found, contents.records, folder, tick);
    else
      fetch_checkpoints(store, place, contents, folder, files, tick);
  } catch (const fs::filesystem_error& e) {
    throw CheckpointError("[run] " + folder.string() + ": " +
                          e.code().message() +
                          ". Hint: " + write_hint(e.code().value(), "TMPDIR"));
  }
}

}  // namespace chexnet
