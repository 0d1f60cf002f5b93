// postmortem.json of a run folder: written by whoever noticed the failure,
// read by the parent and by the next start.
#include "chexnet/comm/watch/postmortem.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"

namespace chexnet {
namespace {
std::filesystem::path file_of(const std::filesystem::path& run_folder) {
  return run_folder / "postmortem.json";
}

std::optional<PostMortemNote> note_of(const nlohmann::json& json) {
  if (!json.contains("sentence")) return std::nullopt;
  PostMortemNote note;
  note.sentence = json.value("sentence", "");
  note.exit_code = json.value("exit_code", 0);
  return note;
}

}  // namespace

std::string PostMortem::sentence() const {
  return what + "; last good checkpoint: " +
         (checkpoint.empty() ? "none" : checkpoint) +
         "; resume with: " + resume;
}

std::string postmortem_json(const PostMortem& report) {
  Json json = {{"time", report.time},     {"cause", report.cause},
               {"ranks", report.ranks},   {"exit_code", report.exit_code},
               {"what", report.what},     {"checkpoint", report.checkpoint},
               {"resume", report.resume}, {"sentence", report.sentence()}};
  json["all_ranks"] = Json::array();
  for (const auto& view : report.views)
    json["all_ranks"].push_back(
        {{"rank", view.rank},
         {"host", view.host},
         {"gpu", view.gpu},
         {"pid", view.pid},
         {"step", view.step},
         {"phase", phase_name(view.phase)},
         {"operation_s", view.phase_age_s},
         {"sequence", view.sequence},
         {"silent_s", std::max(view.heartbeat_age_s, view.host_silent_s)},
         {"gone", view.gone},
         {"stopped", view.stopped},
         {"ended", view.ended}});
  return json_text(json, 1) + "\n";
}

void write_postmortem(const std::filesystem::path& run_folder,
                      const PostMortem& report) {
  write_atomically(file_of(run_folder), postmortem_json(report));
}

// A new start keeps the reports of the last failures: postmortem-1.json, -2 and
// so on. Several ranks may try; the second finds nothing to rename.
void put_postmortem_aside(const std::filesystem::path& run_folder) {
  std::error_code error;
  const auto path = file_of(run_folder);
  if (!std::filesystem::exists(path, error)) return;
  for (int n = 1;; ++n) {
    const auto aside =
        run_folder / ("postmortem-" + std::to_string(n) + ".json");
    if (std::filesystem::exists(aside, error)) continue;
    std::filesystem::rename(path, aside, error);
    return;
  }
}

std::optional<PostMortemNote> read_postmortem(
    const std::filesystem::path& run_folder) {
  const auto path = file_of(run_folder);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  try {
    return note_of(nlohmann::json::parse(read_text(path)));
  } catch (const nlohmann::json::exception&) {  // torn, or not ours
    return std::nullopt;
  } catch (const Error&) {  // no file, or the storage fails for a moment
    return std::nullopt;
  }
}

std::string last_checkpoint(const std::filesystem::path& run_folder) {
  std::error_code error;
  const auto target =
      std::filesystem::read_symlink(run_folder / "checkpoints" / "last", error);
  return error ? "" : target.filename().string();
}

}  // namespace chexnet
