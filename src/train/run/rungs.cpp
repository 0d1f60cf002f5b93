// SWEEP/.rungs/epoch-3/0001.json and on. A number gets its file by link(),
// which also NFS makes for one process alone, from one that is complete.
#include "chexnet/train/run/rungs.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& folder, size_t number) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%04zu.json", number);
  return folder / name.data();
}

std::string text_of(const RungScore& score) {
  return json_text(Json{{"run", score.run},
                        {"value", score.value},
                        {"validation_sha256", score.validation_sha256}});
}

RungScore read_score(const fs::path& file) {
  const Json json = Json::parse(read_text(file), nullptr, false);
  const bool sound = json.is_object() &&
                     json.value("value", Json()).is_number() &&
                     json.value("run", Json()).is_string() &&
                     json.value("validation_sha256", Json()).is_string();
  if (!sound)
    throw CheckpointError(
        "[sweep] {}: is no score of a run. Hint: it was changed; remove {} to "
        "compare from here on afresh",
        file.string(), file.parent_path().string());
  return {json["run"], json["value"], json["validation_sha256"]};
}

// By number: those before `end` that count, each run's newest. A run that
// began anew has several.
using Scores = std::map<size_t, RungScore>;

Scores newest_of_runs(const std::vector<RungScore>& all, size_t end,
                      const std::string& validation_sha256) {
  std::map<std::string, size_t> newest;
  for (size_t n = 0; n < end; ++n)
    if (all[n].validation_sha256 == validation_sha256) newest[all[n].run] = n;
  Scores scores;
  for (const auto& [_, n] : newest) scores.emplace(n, all[n]);
  return scores;
}

RungPlace place_of(size_t number, const std::vector<RungScore>& all) {
  const RungScore& own = all[number];
  RungPlace place;
  for (const auto& [n, score] :
       newest_of_runs(all, number + 1, own.validation_sha256)) {
    if (n == number) continue;
    ++place.of;
    if (own.value <= score.value) ++place.place;
  }
  return place;
}

// All that are there, from the first on; `known` are read already.
void read_more(const fs::path& folder, std::vector<RungScore>& known) {
  std::error_code error;
  for (;;) {
    const fs::path file = file_of(folder, known.size() + 1);
    if (!fs::exists(file, error)) return;
    known.push_back(read_score(file));
  }
}

// The number under which this run's newest score is there, if it is `own`.
std::optional<size_t> find_own(const std::vector<RungScore>& all,
                               const RungScore& own) {
  for (size_t n = all.size(); n-- > 0;)
    if (all[n].run == own.run)
      return all[n] == own ? std::optional(n) : std::nullopt;
  return std::nullopt;
}

}  // namespace

std::string RungPlace::text() const {
  return formatted("place {} of {}, of which {} {} on", place, of, (of + 2) / 3,
                   of > 3 ? "go" : "goes");
}

RungPlace enter_rung(const fs::path& sweep, int64_t epoch,
                     const RungScore& own) {
  const fs::path folder = sweep / ".rungs" / ("epoch-" + std::to_string(epoch));
  const auto refuse = [&folder](const std::string& why) {
    throw CheckpointError(
        "[sweep] {}: a score of this run cannot be written: {}. Hint: runs of "
        "a sweep compare here (train.rungs); make room or rights, or go on "
        "alone with --set train.rungs=[]",
        folder.string(), why);
  };
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(error.message());
  std::vector<RungScore> all;
  read_more(folder, all);
  if (const auto number = find_own(all, own)) return place_of(*number, all);
  const fs::path temporary = unforeseeable_name(folder / "score");
  write_atomically(temporary, text_of(own), {}, "--out");
  for (;;) {
    const int rc =
        ::link(temporary.c_str(), file_of(folder, all.size() + 1).c_str());
    const int code = errno;
    if (rc == 0) break;
    if (code != EEXIST) {
      ::unlink(temporary.c_str());
      refuse(std::strerror(code));
    }
    all.push_back(read_score(file_of(folder, all.size() + 1)));
  }
  ::unlink(temporary.c_str());
  sync_folder(folder);
  all.push_back(own);
  return place_of(all.size() - 1, all);
}

}  // namespace chexnet
