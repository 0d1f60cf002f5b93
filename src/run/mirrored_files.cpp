#include "mirrored_files.hpp"

#include <array>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "chexnet/checkpoint/checkpoint_name.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

// A link to the file, or a copy where the file system has no links.
void add_to_snapshot(const fs::path& file, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(file, to, error);
  if (error) fs::copy_file(file, to);
}

constexpr std::string_view kCheckpoints = "checkpoints/";

}  // namespace

// A run's own folders hold files alone, and no place of another run has such a
// name (working_folder()).
bool is_record(const std::string& name) {
  if (name == "run.lock" || name == "STOP") return false;
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return true;
  const auto folder = name.substr(0, slash);
  return (folder == "log" || folder == "examples") &&
         name.find('/', slash + 1) == std::string::npos;
}

std::optional<StepFile> step_file(const std::string& name) {
  if (!name.starts_with(kCheckpoints)) return std::nullopt;
  const std::string inner = name.substr(kCheckpoints.size());
  const size_t slash = inner.find('/');
  if (slash == std::string::npos ||
      inner.find('/', slash + 1) != std::string::npos)
    return std::nullopt;
  StepFile found{inner.substr(0, slash), inner.substr(slash + 1)};
  if (!checkpoint_step(found.step)) return std::nullopt;
  return found;
}

bool is_file_of_run(const std::string& name) {
  return is_record(name) || step_file(name) || name == "checkpoints/last" ||
         name == "checkpoints/best";
}

std::string own_id(const fs::path& folder) {
  const fs::path file = folder / kPlaceId;
  if (fs::exists(file)) return read_text(file);
  std::array<unsigned, 4> random{};
  std::random_device source;
  for (auto& word : random) word = source();
  return hex_text(std::as_bytes(std::span(random)));
}

void move_aside(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != ".lock" &&
        entry.path().filename() != kPlaceId)
      found.push_back(entry.path());
  if (found.empty()) return;
  fs::path to;
  for (int i = 1; to.empty() || fs::exists(to); ++i)
    to = folder.string() + ".before-" + std::to_string(i);
  make_private_folder(to);
  bool has_run = false;
  for (const auto& path : found) {
    has_run |= path.filename() == "config.yaml";
    fs::rename(path, to / path.filename());
  }
  if (has_run)
    log_warning("[run] " + folder.string() +
                ": the run was last written elsewhere; what was here is in " +
                to.string());
  else
    fs::remove_all(to);
}

std::map<std::string, std::string> records_in(const fs::path& folder) {
  std::map<std::string, std::string> found;
  fs::recursive_directory_iterator it(folder), end;
  for (; it != end; ++it) {
    const std::string name = fs::relative(it->path(), folder).string();
    if (is_hidden(it->path()) || name == "checkpoints") {
      it.disable_recursion_pending();
      continue;
    }
    std::error_code error;
    if (!it->is_regular_file(error) || !is_record(name)) continue;
    const auto size = it->file_size(error);
    const auto time = it->last_write_time(error).time_since_epoch().count();
    if (!error) found[name] = std::to_string(size) + " " + std::to_string(time);
  }
  return found;
}

std::map<std::string, std::string> link_checkpoints(const fs::path& from,
                                                    const fs::path& to) {
  std::map<std::string, std::string> links;
  fs::create_directories(to);
  for (const auto& step : fs::directory_iterator(from)) {
    if (!checkpoint_step(step.path().filename().string()) || step.is_symlink())
      continue;
    const fs::path copy = to / step.path().filename();
    fs::create_directory(copy);
    for (const auto& file : fs::directory_iterator(step.path()))
      if (!is_hidden(file.path()))
        add_to_snapshot(file.path(), copy / file.path().filename());
  }
  for (const char* link : {"last", "best"})
    if (fs::is_symlink(from / link))
      links[link] = fs::read_symlink(from / link).filename().string();
  return links;
}

}  // namespace chexnet
