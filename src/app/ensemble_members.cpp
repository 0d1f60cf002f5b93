#include "ensemble_members.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/patient_ids.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/train/checkpoint/store.hpp"
#include "run_folders.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMost = 64;  // networks: a file of 2 GB

// Why a run's scores are not those of its weights; empty where they are.
std::string problem_of(const fs::path& folder) {
  const RunSummary run = summarize_run(folder);
  if (run.state == kEnsemble) return "is an ensemble";
  if (run.state != "finished") return "has not finished (" + run.state + ")";
  return run.has_results ? "" : "has no results.json";
}

Member member_of(const fs::path& folder) {
  Member m{.folder = fs::weakly_canonical(folder),
           .model = resolve_model(folder),
           .config = load_config({folder / "config.yaml"}, {}),
           .results = read_results(folder),
           .rows = read_splits_csv(folder / "split.csv")};
  m.name = m.folder.filename().string();
  const Json& step = in_results(m, "/model/scored_step");
  const std::string checkpoint = m.model.parent_path().filename().string();
  const auto kept = parsed_number<int64_t>(
      checkpoint.substr(checkpoint.find('-') + 1));  // step-00000007
  if (!step.is_number_integer() || !kept || step != *kept)
    throw CheckpointError(
        "[ensemble] {}: its scores are of step {}, and its weights of {}. "
        "Hint: `train CONFIG --resume --out RUN` scores it anew at its end",
        folder.string(), step.dump(), checkpoint);
  return m;
}

// "pKKKK" of pseudonyms, which tells keys apart; empty of plain ids.
std::string kind_of_ids(const Member& m) {
  const std::string& id = m.rows.front().patient;
  return is_pseudonym(id) ? id.substr(0, id.find('-')) : "";
}

// Else nobody could tell whether a patient was trained on.
void check_patients(const std::vector<Member>& members) {
  std::map<std::string, std::pair<const Member*, std::string>> patient_of;
  const auto refuse = [](const Member& a, const Member& b,
                         const std::string& what) {
    throw DataError(
        "[ensemble] {} and {} {}, so whether a patient was trained on cannot "
        "be told. Hint: train the members with one table and one privacy.key",
        a.name, b.name, what);
  };
  const Member& first = members.front();
  for (const auto& m : members) {
    if (kind_of_ids(m) != kind_of_ids(first))
      refuse(first, m, "call patients by pseudonyms of different keys");
    for (const auto& row : m.rows) {
      const auto& [known, patient] =
          patient_of.try_emplace(row.image, &m, row.patient).first->second;
      if (patient != row.patient)
        refuse(*known, m, "have different patients of " + row.image);
    }
  }
}

void check_crops(const std::vector<Member>& members) {
  const EvalCrops crops = members.front().config.eval.crops;
  for (const auto& m : members)
    if (m.config.eval.crops != crops)
      throw ConfigError(
          "[ensemble] {} was scored with eval.crops={}, and {} with {}. Hint: "
          "members of one eval.crops",
          m.name, choice_name(m.config.eval.crops), members.front().name,
          choice_name(crops));
}

void warn_of_missing_folds(const std::vector<Member>& members) {
  std::map<int, std::set<int>> numbers;  // by how many folds
  for (const auto& m : members)
    if (m.config.data.fold.on())
      numbers[m.config.data.fold.folds].insert(m.config.data.fold.number);
  for (const auto& [folds, there] : numbers)
    if (std::cmp_less(there.size(), folds))
      log_warning("[ensemble] " + std::to_string(there.size()) + " of " +
                  std::to_string(folds) +
                  " folds are here: not all patients were validated");
}

void name_apart(std::vector<Member>& members) {
  std::map<std::string, int> named;
  std::map<std::string, std::string> models;  // by SHA-256
  for (const auto& m : members) ++named[m.name];
  for (auto& m : members) {
    if (named[m.name] > 1) m.name = m.folder.string();
    const auto [known, is_new] =
        models.try_emplace(sha256_file(m.model.string()), m.name);
    if (!is_new)
      log_warning("[ensemble] " + m.name + " has the network of " +
                  known->second + ", which counts twice");
  }
}

}  // namespace

const Json& in_results(const Member& member, const std::string& place) {
  static const Json kNull;
  const Json::json_pointer pointer(place);
  return member.results.contains(pointer) ? member.results.at(pointer) : kNull;
}

std::vector<Member> ensemble_members(const std::vector<std::string>& folders) {
  const std::set<fs::path> named(folders.begin(), folders.end());
  std::vector<Member> members;
  for (const auto& folder : runs_below(folders)) {
    const std::string problem = problem_of(folder);
    if (problem.empty()) {
      members.push_back(member_of(folder));
      continue;
    }
    if (named.contains(folder))
      throw CheckpointError("[ensemble] {}: {}. Hint: name finished runs",
                            folder.string(), problem);
    log_warning("[ensemble] " + folder.string() + " is left out: it " +
                problem);
  }
  if (members.size() < 2)
    throw ConfigError(
        "[ensemble] {} with final scores. Hint: two or more, or a folder of "
        "them, as a sweep leaves it",
        counted(std::ssize(members), "run"));
  if (members.size() > kMost)
    throw ConfigError("[ensemble] {} runs. Hint: at most {}", members.size(),
                      kMost);
  check_patients(members);
  check_crops(members);
  warn_of_missing_folds(members);
  name_apart(members);
  return members;
}

}  // namespace chexnet
