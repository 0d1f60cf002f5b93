#include "chexnet/report/run_files.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/report/run_summary.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr auto kKinds = std::to_array<RunFileKind>({
    {"report.html", "the page to read: figures, thresholds, curves, examples"},
    {"report-shared.html", "the same for passing on (report --no-images)"},
    {"model_card.md", "the same in short, to go with the weights"},
    {"results.json", "every figure of these, for scripts"},
    {"predictions_*.csv", "labels and probabilities of each image of a split"},
    {"checkpoints/best", "link to the checkpoint that is scored"},
    {"checkpoints/last", "link to the newest checkpoint"},
    {"checkpoints/*/model.safetensors",
     "weights, with all that scoring needs: the one file to hand on"},
    {"checkpoints/*/optimizer.safetensors", "for --resume alone"},
    {"checkpoints/*/state.json", "where training stood; sums of both files"},
    {"model.safetensors", "of an ensemble: its members' weights"},
    {"SHA256SUMS", "of an ensemble: sums of its files"},
    {"config.yaml", "all settings, to repeat the run"},
    {"split.csv", "image, patient and split of each image: keep it private"},
    {"split.csv.sha256", "its sum, for sha256sum -c"},
    {"metrics.jsonl", "what happened, a line each"},
    {"events.out.tfevents.*", "the same for TensorBoard"},
    {"examples/*.png", "pictures of the report: patients' images"},
    {"examples/examples.json", "which images, findings and scores they are of"},
    {"log/rank-*.txt", "messages of each rank"},
    {"postmortem*.json", "which rank failed, where, and how to go on"},
    {"submitted", "the batch job that is to begin the run"},
    {"requeues", "how often a batch job was started again"},
    {"resubmit", "what starts the job again, where PBS refused it"},
    {"STOP", "makes the run stop with a checkpoint"},
    {"TIMELINE", "makes the run record its next 20 steps"},
    {"timeline*.json", "what ranks did and when, for Perfetto"},
    {".lock", "held while the run is trained"},
    {".*.partial", "left by a process that was killed while it wrote"},
});

// As fnmatch(3) does, but a folder's name has no part of a path in it.
bool is_of(const RunFileKind& kind, const std::string& name) {
  return fnmatch(kind.name, name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}

bool fits(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0;
}

// In the run folder itself: "log" of "log/rank-*.txt".
bool is_name_of_run(const std::string& name) {
  // Hosts that are left for a restart; made with the file system.
  if (name == "hosts" || name == "lost+found") return true;
  return std::ranges::any_of(kKinds, [&](const RunFileKind& kind) {
    const std::string whole = kind.name;
    return fits(whole.substr(0, whole.find('/')), name);
  });
}

// Files that people and batch systems put beside a run: its output
// (slurm-4711.out, train.o4711), the script that starts it, its config.
bool is_file_of_job(const fs::directory_entry& entry) {
  static constexpr std::array<const char*, 10> kPatterns = {
      "*.log", "*.out",  "*.err", "*.txt",        "*.sh",
      "*.yml", "*.yaml", "*.pbs", "*.[oe][0-9]*", "*.p[oe][0-9]*"};
  std::error_code error;
  const std::string name = entry.path().filename().string();
  return entry.is_regular_file(error) &&
         std::ranges::any_of(kPatterns, [&](const char* pattern) {
           return fits(pattern, name);
         });
}

}  // namespace

namespace {

// Where no folder is or can be made: a file on the way, a loop of links.
void refuse_path(const fs::path& folder) {
  constexpr const char* kHint =
      ". Hint: name a new or an empty folder by --out";
  fs::path place = folder;
  std::error_code error;
  fs::file_status state = fs::status(place, error);
  while (state.type() == fs::file_type::not_found && place.has_parent_path() &&
         place.parent_path() != place) {
    place = place.parent_path();
    state = fs::status(place, error);
  }
  if (state.type() == fs::file_type::none)
    throw CheckpointError("[run] {}: {}{}", printable(place.string()),
                          error.message(), kHint);
  if (state.type() != fs::file_type::not_found &&
      state.type() != fs::file_type::directory)
    throw CheckpointError("[run] {}: is no folder{}", printable(place.string()),
                          kHint);
}

}  // namespace

void check_may_hold_run(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "config.yaml", error)) return;
  refuse_path(folder);
  std::vector<std::string> others;
  for (fs::directory_iterator it(folder, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!is_name_of_run(name) && !is_file_of_job(*it)) others.push_back(name);
  }
  if (others.empty()) return;
  std::ranges::sort(others);
  constexpr size_t kShown = 3;
  throw CheckpointError(
      "[run] {}: is not empty and holds no run, but {}. Hint: name a new or "
      "an empty folder by --out",
      printable(folder.string()), printable(listed(others, kShown)));
}

std::span<const RunFileKind> run_file_kinds() { return kKinds; }

std::vector<RunFiles> files_of_run(const fs::path& folder) {
  check_holds_run(folder);
  std::vector<RunFiles> found;
  for (const auto& kind : kKinds) found.push_back({kind.name, kind.what});
  RunFiles others;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(
           folder, fs::directory_options::skip_permission_denied, error);
       !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (!it->is_symlink() && it->is_directory()) {
      // Links to the same files, while run.after_checkpoint reads them.
      if (it->path().filename() == ".after_checkpoint")
        it.disable_recursion_pending();
      continue;
    }
    const std::string name = it->path().lexically_relative(folder).string();
    const auto kind = std::ranges::find_if(
        kKinds, [&](const auto& k) { return is_of(k, name); });
    RunFiles& files = kind == kKinds.end()
                          ? others
                          : found[static_cast<size_t>(kind - kKinds.begin())];
    if (kind == kKinds.end()) names.push_back(name);
    ++files.files;
    std::error_code unknown;
    const auto bytes = it->is_symlink() ? 0 : it->file_size(unknown);
    files.bytes += unknown ? 0 : bytes;
  }
  std::erase_if(found, [](const RunFiles& files) { return files.files == 0; });
  if (others.files == 0) return found;
  std::ranges::sort(names);
  constexpr size_t kShown = 3;
  others.what = printable(listed(names, kShown));
  found.push_back(std::move(others));
  return found;
}

}  // namespace chexnet
