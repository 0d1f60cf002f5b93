#include "ensemble_members.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/patient_ids.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
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

[[noreturn]] void refuse_patients(const Member& a, const Member& b,
                                  const std::string& what) {
  throw DataError(
      "[ensemble] {} and {} {}, so whether a patient was trained on cannot be "
      "told. Hint: train the members with one table and one privacy.key",
      a.name, b.name, what);
}

void check_ids(const std::vector<Member>& members) {
  for (const auto& m : members)
    if (kind_of_ids(m) != kind_of_ids(members.front()))
      refuse_patients(members.front(), m,
                      "call patients by pseudonyms of different keys");
}

void check_scored_alike(const std::vector<Member>& members) {
  const std::string first = scored_with(members.front().config.eval);
  for (const auto& m : members)
    if (const auto own = scored_with(m.config.eval); own != first)
      throw ConfigError(
          "[ensemble] {} was scored with {}, and {} with {}. Hint: members "
          "scored alike",
          m.name, own, members.front().name, first);
  const EvalConfig& config = members.front().config.eval;
  if (config.by != ScoredBy::kImage && config.combine == CombineImages::kMax)
    throw ConfigError(
        "[ensemble] the members were scored with {}: their tables do not tell "
        "the highest score of the ensemble. Hint: members of eval.by=image, "
        "and then `evaluate ENSEMBLE --set eval.by={}`; or eval.combine=mean",
        first, choice_name(config.by));
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
  for (const auto& m : members) ++named[m.name];
  for (auto& m : members)
    if (named[m.name] > 1) m.name = m.folder.string();
}

}  // namespace

const Json& in_results(const Member& member, const std::string& place) {
  static const Json kNull;
  const Json::json_pointer pointer(place);
  return member.results.contains(pointer) ? member.results.at(pointer) : kNull;
}

std::vector<SplitRow> rows_of(const std::vector<Member>& members) {
  const auto closeness = [](const std::string& split) {
    return split == "train" ? 2 : (split == "val" ? 1 : 0);
  };
  struct Known {
    size_t row;
    const Member* member;  // the first with the image
  };
  std::vector<SplitRow> all;
  std::unordered_map<std::string, Known> known;
  for (const auto& m : members)
    for (const auto& row : m.rows) {
      const auto [found, is_new] =
          known.try_emplace(row.image, Known{all.size(), &m});
      if (is_new) all.push_back(row);
      SplitRow& other = all[found->second.row];
      if (other.patient != row.patient)
        refuse_patients(*found->second.member, m,
                        "have different patients of " + row.image);
      if (closeness(row.split) > closeness(other.split))
        other.split = row.split;
    }
  return all;
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
  check_ids(members);
  check_scored_alike(members);
  warn_of_missing_folds(members);
  name_apart(members);
  return members;
}

}  // namespace chexnet
