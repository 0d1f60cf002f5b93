#include "chexnet/report/run_results.hpp"

#include <algorithm>
#include <map>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/json_fault.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "report_values.hpp"

namespace chexnet {
namespace {

// Raised when a reader of older files would misunderstand newer ones.
constexpr int kFormat = 1;
constexpr const char* kFile = "results.json";

Json count_or_null(const std::optional<size_t>& count) {
  return count ? Json(*count) : Json(nullptr);
}

Json splits_json(const std::vector<SplitFacts>& splits) {
  Json json = Json::object();
  for (const auto& split : splits)
    json[split.name] = {{"images", split.images},
                        {"patients", count_or_null(split.patients)},
                        {"sha256", split.sha256},
                        {"missing", split.missing}};
  return json;
}

Json data_json(const RunFacts& facts) {
  Json json = {
      {"table", facts.table},
      {"sha256", facts.table_sha256},
      {"release", facts.release},
      {"patients_in_two_splits", count_or_null(facts.patients_in_two_splits)},
      {"pictures_in_two_splits", facts.pictures_in_two_splits}};
  json["splits"] = splits_json(facts.splits);
  return json;
}

// By name, in the first one's order; values that differ one after the other.
Json settings_of_all(const std::vector<Json>& of_members) {
  std::vector<std::pair<std::string, std::vector<std::string>>> settings;
  for (const auto& results : of_members)
    for (const auto& row : member(results, "settings")) {
      if (!row.is_array() || row.size() != 2 || !row[0].is_string() ||
          !row[1].is_string())
        continue;
      const auto name = row[0].get<std::string>();
      const auto value = row[1].get<std::string>();
      auto found = std::ranges::find(
          settings, name, [](const auto& setting) { return setting.first; });
      if (found == settings.end())
        found = settings.insert(settings.end(), {name, {}});
      if (std::ranges::find(found->second, value) == found->second.end())
        found->second.push_back(value);
    }
  Json rows = Json::array();
  for (const auto& [name, values] : settings) {
    std::string all;
    for (const auto& value : values) all += (all.empty() ? "" : " | ") + value;
    rows.push_back({name, all});
  }
  return rows;
}

// The most of a member's `data`; null where one does not know.
Json worst_of(const std::vector<Json>& of_members, const char* key) {
  double most = 0;
  for (const auto& results : of_members) {
    const auto count = number(member(results, "data"), key);
    if (!count) return nullptr;
    most = std::max(most, *count);
  }
  return static_cast<int64_t>(most);
}

Json score_json(const EnsembleMember::Score& score) {
  return {{"mean_auroc", json_of(score.auroc)},
          {"findings_in_mean", score.findings}};
}

Json ensemble_json(const EnsembleFacts& facts) {
  Json members = Json::array(), spreads = Json::object();
  for (const auto& m : facts.members)
    members.push_back({{"run", m.run},
                       {"model_sha256", m.model_sha256},
                       {"validation", score_json(m.validation)},
                       {"test", score_json(m.test)},
                       {"difference", json_of(m.difference.value)},
                       {"interval", json_of(m.difference.interval)}});
  for (const auto& spread : facts.spreads)
    spreads[spread.finding] = {{"median", spread.median},
                               {"most", spread.most}};
  return {{"members", members},
          {"out_of_fold", facts.out_of_fold},
          {"difference", json_of(facts.difference)},
          {"interval", json_of(facts.interval)},
          {"spreads", spreads}};
}

bool is_count(const Json& value) { return value.is_number() && value >= 0; }

bool is_share(const Json& value) {
  return value.is_null() || (value.is_number() && value >= 0 && value <= 1);
}

// [low, high] of a fraction.
bool is_interval(const Json& value) {
  return value.is_null() ||
         (value.is_array() && value.size() == 2 && value[0].is_number() &&
          value[1].is_number() && value[0] >= 0 && value[0] <= value[1] &&
          value[1] <= 1);
}

bool is_evaluation(const Json& scores) {
  const Json& findings = member(scores, "findings");
  return is_count(member(scores, "images")) &&
         find_choice<ScoredBy>(text(scores, "by")) &&
         is_share(member(scores, "mean_auroc")) &&
         is_interval(member(scores, "mean_auroc_interval")) &&
         is_share(member(scores, "any_finding_auroc_mean_logit")) &&
         is_interval(member(scores, "any_finding_interval")) &&
         findings.is_object() && is_count(member(scores, "findings_in_mean")) &&
         member(scores, "findings_in_mean") <= findings.size() &&
         std::ranges::all_of(findings, [](const Json& finding) {
           return finding.is_object() && is_share(member(finding, "auroc")) &&
                  is_interval(member(finding, "auroc_interval"));
         });
}

// Of the parts without which a page would be false; "" where all are as
// write_results() makes them.
std::string damaged_part(const Json& results) {
  const Json& splits = member(member(results, "data"), "splits");
  const Json& evaluations = member(results, "evaluations");
  if (!splits.is_object()) return "data.splits";
  for (const auto& [name, split] : splits.items())
    if (!is_count(member(split, "images"))) return "data.splits." + name;
  const Json& shared =
      member(member(results, "data"), "patients_in_two_splits");
  if (!shared.is_null() && !is_count(shared))
    return "data.patients_in_two_splits";
  if (!member(results, "resume_changes").is_array()) return "resume_changes";
  if (!member(member(results, "model"), "network").is_string())
    return "model.network";
  if (!evaluations.is_object()) return "evaluations";
  for (const auto& [name, scores] : evaluations.items())
    if (!is_evaluation(scores)) return "evaluations." + name;
  return "";
}

void write(const std::filesystem::path& folder, Json json,
           const std::vector<SplitScores>& results) {
  json["evaluations"] = Json::object();
  for (const auto& result : results)
    json["evaluations"][result.split] = scores_json(result);
  write_atomically(folder / kFile, json_text(json, 1) + "\n");
}

}  // namespace

void write_results(const std::filesystem::path& folder, const RunFacts& facts,
                   const std::vector<SplitScores>& results) {
  Json json = {{"format", kFormat},
               {"run", facts.name},
               {"version", CHEXNET_VERSION},
               {"written", utc_time()},
               {"command", facts.command},
               {"data", data_json(facts)},
               {"model",
                {{"network", facts.network},
                 {"frozen", facts.frozen},
                 {"input_px", facts.input_px},
                 {"weighted_loss", facts.weighted_loss},
                 {"scored", facts.scored},
                 {"scored_step", facts.scored_step}}}};
  json["gpu_totals"] = gpu_totals_json(facts.gpu_totals);
  for (const auto& row : facts.settings)
    json["settings"].push_back({row.first, row.second});
  json["overlap"] = facts.overlap;
  if (!facts.transports.empty()) json["transports"] = facts.transports;
  json["resume_changes"] = Json::array();
  for (const auto& change : facts.changes)
    json["resume_changes"].push_back({{"step", change.step},
                                      {"what", change.what},
                                      {"before", change.before},
                                      {"after", change.after}});
  write(folder, std::move(json), results);
}

void write_ensemble_results(const std::filesystem::path& folder,
                            const std::vector<Json>& of_members,
                            const EnsembleFacts& facts,
                            const std::vector<SplitScores>& results) {
  Json json = of_members.front();
  json["run"] = facts.name;
  json["version"] = CHEXNET_VERSION;
  json["written"] = utc_time();
  json["command"] = facts.command;
  json["data"]["splits"] = splits_json(facts.splits);
  json["settings"] = settings_of_all(of_members);
  for (const char* key : {"patients_in_two_splits", "pictures_in_two_splits"})
    json["data"][key] = worst_of(of_members, key);
  json["model"]["weighted_loss"] =
      std::ranges::any_of(of_members, [](const Json& results) {
        return is_true(member(results, "model"), "weighted_loss");
      });
  json["ensemble"] = ensemble_json(facts);
  json["resume_changes"] = Json::array();
  json["overlap"] = nullptr;
  json["gpu_totals"] = nullptr;
  json.erase("transports");
  for (const char* key : {"scored", "scored_step"}) json["model"].erase(key);
  write(folder, std::move(json), results);
}

Json read_results(const std::filesystem::path& folder) {
  const auto path = folder / kFile;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw CheckpointError(
        "[report] {}: no {}. Hint: a run writes it with its final scores; "
        "`train CONFIG --resume --out RUN` finishes a run that was stopped",
        folder.string(), kFile);
  const std::string text = read_text(path);
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    const JsonFault fault = json_fault(text);
    throw CheckpointError(
        "[report] {}:{}: is no JSON: {}. Hint: the file is damaged or was "
        "edited; copy it again from where the run was made",
        path.string(), fault.line, fault.what);
  }
  const Json format = json.is_object() ? json.value("format", Json()) : Json();
  if (format == kFormat) {
    for (const char* key : {"run", "data", "model", "evaluations"})
      if (!json.contains(key))
        throw CheckpointError(
            "[report] {}:1: has no '{}', which each record of a run has. Hint: "
            "copy it again from where the run was made",
            path.string(), key);
    if (const std::string part = damaged_part(json); !part.empty())
      throw CheckpointError(
          "[report] {}: '{}' is not what a run writes there. Hint: the file is "
          "damaged, was edited, or another version of the program wrote it; "
          "copy "
          "it again from where the run was made, or take that version",
          path.string(), part);
    return json;
  }
  if (format.is_number())
    throw CheckpointError(
        "[report] {}:1: has the format {}, and this version reads {}. Hint: "
        "use "
        "the version that wrote it",
        path.string(), format.dump(), kFormat);
  throw CheckpointError(
      "[report] {}:1: is no record of a run: it has no format. Hint: copy it "
      "again from where the run was made",
      path.string());
}

bool is_scored_table(const std::filesystem::path& table,
                     const Json& evaluation) {
  return sha256_file(table) == text(evaluation, "predictions_sha256");
}

Predictions predictions_of_run(const std::filesystem::path& table,
                               const std::vector<SplitRow>& rows) {
  Predictions predictions = read_predictions(table.string(), nullptr);
  std::map<std::string_view, std::string_view> patients;
  for (const auto& row : rows) patients[row.image] = row.patient;
  for (const auto& image : predictions.images) {
    const auto found = patients.find(image);
    predictions.patients.emplace_back(
        found == patients.end() ? std::string_view(image) : found->second);
  }
  return predictions;
}

std::string shared_pictures_text(const Json& results) {
  const double shared =
      number(member(results, "data"), "pictures_in_two_splits").value_or(0);
  if (shared <= 0) return {};
  return "they are too good, as " + plural(number_text(shared), "picture") +
         " of validation or test " + (shared == 1 ? "is" : "are") +
         " also in another split, under another name";
}

}  // namespace chexnet
