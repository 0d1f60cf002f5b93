#include "chexnet/checkpoint/store.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

std::string step_name(std::int64_t step) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "step-%08lld", static_cast<long long>(step));
  return text.data();
}

std::vector<fs::path> steps_newest_first(const fs::path& folder) {
  std::vector<fs::path> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("step-") && name.find('.') == std::string::npos && entry.is_directory())
      steps.push_back(entry.path());
  }
  std::ranges::sort(steps, std::greater<>());
  return steps;
}

void move_aside(const fs::path& path) {
  fs::path to = path;
  for (int i = 1;; ++i) {
    to.replace_filename(path.filename().string() + ".broken-" + std::to_string(i));
    if (!fs::exists(to)) break;
  }
  fs::rename(path, to);
  log_warning("[checkpoint] " + path.string() + " is broken and was moved to " + to.string());
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    throw CheckpointError("[checkpoint] " + folder_.string() + ": " + error.message() +
                          ". Hint: is the run folder writable?");
}

std::string CheckpointStore::problem(const fs::path& checkpoint, const std::string& only) {
  try {
    const auto state = nlohmann::json::parse(read_text(checkpoint / "state.json"));
    for (const auto& [name, entry] : state.at("files").items()) {
      if (!only.empty() && name != only) continue;
      const fs::path file = checkpoint / name;
      if (!fs::exists(file)) return name + " is missing";
      if (fs::file_size(file) != entry.at("bytes").get<std::uint64_t>())
        return name + " has another size";
      if (sha256_file(file) != entry.at("sha256").get<std::string>())
        return name + " has another SHA-256";
    }
    return {};
  } catch (const std::exception& e) {
    return std::string("state.json: ") + e.what();
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

void CheckpointStore::save(std::int64_t step, const std::string& state, bool is_best,
                           const std::function<void(const fs::path&)>& write_files) {
  const std::string name = step_name(step);
  const fs::path final_folder = folder_ / name, partial = folder_ / ("." + name + ".tmp");
  if (fs::exists(final_folder) && !problem(final_folder).empty()) move_aside(final_folder);
  if (!fs::exists(final_folder)) {
    try {
      fs::remove_all(partial);
      fs::create_directory(partial);
      write_files(partial);
      auto json = nlohmann::json::parse(state);
      json["files"] = nlohmann::json::object();
      for (const auto& entry : fs::directory_iterator(partial))
        json["files"][entry.path().filename().string()] = {{"bytes", entry.file_size()},
                                                           {"sha256", sha256_file(entry.path())}};
      OutputFile out(partial / "state.json");
      out.write(json.dump(1) + "\n");
      out.commit();
      sync_folder(partial);
      fs::rename(partial, final_folder);
      sync_folder(folder_);
    } catch (const fs::filesystem_error& e) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      throw CheckpointError("[checkpoint] " + final_folder.string() + ": " + e.what() +
                            ". Hint: the earlier checkpoints are untouched; free space and resume");
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      throw;
    }
  }
  point("last", name);
  if (is_best) point("best", name);
  remove_old();
}

void CheckpointStore::point(const char* link, const std::string& target) const {
  const fs::path path = folder_ / link, partial = folder_ / ("." + std::string(link) + ".tmp");
  std::error_code ignored;
  fs::remove(partial, ignored);
  fs::create_symlink(target, partial);
  fs::rename(partial, path);
  sync_folder(folder_);
}

void CheckpointStore::remove_old() const {
  std::error_code error;
  const auto best = fs::read_symlink(folder_ / "best", error).filename();
  int kept = 0;
  for (const auto& step : steps_newest_first(folder_))
    if (++kept > keep_ && step.filename() != best) fs::remove_all(step, error);
}

std::optional<fs::path> CheckpointStore::newest_valid() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(".step-"))
      fs::remove_all(entry.path(), error);  // a save that was cut short
  }
  for (const auto& step : steps_newest_first(folder_)) {
    const std::string wrong = problem(step);
    if (wrong.empty()) return step;
    log_warning("[checkpoint] " + step.string() + ": " + wrong);
    move_aside(step);
  }
  return std::nullopt;
}

fs::path resolve_model(const fs::path& named) {
  constexpr const char* kModel = "model.safetensors";
  if (fs::is_regular_file(named) && named.filename() != kModel) return fs::canonical(named);
  const fs::path folder = named.filename() == kModel ? named.parent_path() : named;
  for (const auto& candidate :
       {folder, folder / "checkpoints" / "best", folder / "checkpoints" / "last"}) {
    if (!fs::exists(candidate / kModel)) continue;
    if (fs::exists(candidate / "state.json")) {
      const std::string wrong = CheckpointStore::problem(candidate, kModel);
      if (!wrong.empty())
        throw CheckpointError("[checkpoint] " + candidate.string() + ": " + wrong +
                              ". Hint: choose another checkpoint of that run");
    }
    return fs::canonical(candidate / kModel);
  }
  throw CheckpointError("[checkpoint] " + named.string() +
                        ": no checkpoint here. Hint: name a run folder, "
                        "runs/<name>/checkpoints/step-… or a model's .safetensors file");
}

}  // namespace chexnet
