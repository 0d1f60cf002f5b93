// ensemble: several runs as one network, made of their records alone: no image
// is read and no network computes. The result is a run folder that no training
// made, so each command that takes a run takes it.
#include "chexnet/eval/ensemble.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/eval/logit.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/model/formats/export_folder.hpp"
#include "chexnet/model/loss.hpp"
#include "chexnet/report/html_report.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/train/ensemble_file.hpp"
#include "ensemble_members.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

struct EnsembleOptions {
  std::vector<std::string> runs;
  std::string out;
};

std::set<std::string> images_of(const Member& member,
                                const std::string& split) {
  std::set<std::string> images;
  for (const auto& row : member.rows)
    if (row.split == split) images.insert(row.image);
  return images;
}

// Whether an image of validation is no such image to all members.
bool is_out_of_fold(const std::vector<Member>& members) {
  const auto first = images_of(members.front(), "val");
  return std::ranges::any_of(
      members, [&](const Member& m) { return images_of(m, "val") != first; });
}

SplitFacts facts_of(const std::string& split,
                    const std::vector<SplitRow>& rows) {
  std::vector<std::string> images;
  std::set<std::string> patients;
  for (const auto& row : rows) {
    if (row.split != split) continue;
    images.push_back(row.image);
    patients.insert(row.patient);
  }
  return {split, images.size(), patients.size(), names_sha256(images)};
}

std::string evaluated_sha256(const Member& member, const std::string& split) {
  const Json& sum =
      in_results(member, "/evaluations/" + split + "/split/sha256");
  return sum.is_string() ? sum.get<std::string>() : "";
}

// The tables that the members' figures are of. None where one of them has none.
std::vector<Predictions> tables_of(const std::vector<Member>& members,
                                   const std::string& split) {
  std::vector<Predictions> tables;
  for (const auto& m : members) {
    const fs::path file = m.folder / ("predictions_" + split + ".csv");
    if (images_of(m, split).empty()) {
      log_warning("[ensemble] no figures of the " + split +
                  " split: " + m.name + " has no images of it");
      return {};
    }
    if (evaluated_sha256(m, split).empty()) {
      log_warning("[ensemble] no figures of the " + split +
                  " split: " + m.name + " did not score it (eval.splits)");
      return {};
    }
    if (!is_scored_table(file, in_results(m, "/evaluations/" + split)))
      throw DataError(
          "[ensemble] {}: is not the table that the run wrote. Hint: take it "
          "from where the run was made",
          file.string());
    tables.push_back(predictions_of_run(file, m.rows));
  }
  return tables;
}

// On test each image counts with all members, so it must be test to all.
bool have_one_test(const std::vector<Member>& members) {
  std::set<std::string> sums;
  for (const auto& m : members) sums.insert(evaluated_sha256(m, "test"));
  if (sums.size() == 1 || sums.contains("")) return true;  // or some have none
  log_warning(
      "[ensemble] no figures of the test split: the runs have several, and "
      "what is test to one may be training to another");
  return false;
}

// That none of its patients is one that a member was trained on.
void check_test(const Predictions& test, const std::vector<SplitRow>& rows) {
  std::set<std::string> trained;
  for (const auto& row : rows)
    if (row.split == "train") trained.insert(row.patient);
  const auto leaked = std::ranges::count_if(
      test.patients, [&](const auto& p) { return trained.contains(p); });
  if (leaked > 0)
    throw DataError(
        "[ensemble] {} of {} of test are of patients that a member was trained "
        "on. Hint: members with one test split",
        leaked, counted(std::ssize(test.images), "image"));
}

void warn_of_fewer_scores(const Predictions& test) {
  const size_t findings = test.findings.size();
  int64_t alone = 0;
  for (size_t i = 0; i < test.images.size() && !test.spreads.empty(); ++i)
    if (test.scored(i) && std::isnan(test.spreads[i * findings])) ++alone;
  if (alone > 0)
    log_warning("[ensemble] " + counted(alone, "image") +
                " of test were scored by one member alone: the others found "
                "them damaged");
}

// Empty without a labeled entry of a scored image.
std::optional<double> mean_loss(const Predictions& predictions) {
  double sum = 0, entries = 0;
  for (size_t at = 0; at < predictions.labels.size(); ++at) {
    const float label = predictions.labels[at];
    const double p = predictions.probabilities[at];
    if (std::isnan(label) || std::isnan(p)) continue;
    sum += entry_loss(nearest_logit(p), label, 1, 1);
    ++entries;
  }
  return entries > 0 ? std::optional(sum / entries) : std::nullopt;
}

// One per finding that has any.
std::vector<SpreadFacts> spreads_of(const Predictions& predictions) {
  std::vector<SpreadFacts> facts;
  const size_t findings = predictions.findings.size();
  for (size_t k = 0; k < findings && !predictions.spreads.empty(); ++k) {
    std::vector<double> values;
    for (size_t i = k; i < predictions.spreads.size(); i += findings)
      if (!std::isnan(predictions.spreads[i]))
        values.push_back(predictions.spreads[i]);
    if (values.empty()) continue;
    std::ranges::sort(values);
    facts.push_back(
        {predictions.findings[k], values[values.size() / 2], values.back()});
  }
  return facts;
}

// An ensemble while it is made, in the order of work.
class Ensemble {
 public:
  Ensemble(std::vector<Member> members, const EnsembleOptions& options)
      : members_(std::move(members)),
        rows_(rows_of(members_)),
        name_((fs::absolute(options.out) / "")
                  .lexically_normal()
                  .parent_path()
                  .filename()),
        config_(load_config({members_.front().folder / "config.yaml"}, {},
                            nullptr,
                            [this](Config& c) {
                              c.data.fold = {};
                              c.run.dir.clear();
                              c.run.name = name_;
                            })),
        folder_("ensemble", options.out),
        draws_{.threads = static_cast<int>(allowed_cpus().size())} {
    facts_.name = name_;
    facts_.out_of_fold = is_out_of_fold(members_);
    std::vector<std::string> words = {"chexnet-train", "ensemble"};
    words.insert(words.end(), options.runs.begin(), options.runs.end());
    words.insert(words.end(), {"--out", options.out + "-again"});
    facts_.command = command_text(words);
  }

  void score_validation() {
    const auto tables = tables_of(members_, "val");
    if (tables.empty()) return;
    const Predictions val = mean_of_tables(tables);
    rules_ = choose_rules(val, {},
                          {config_.eval.sensitivity, config_.eval.specificity});
    rules_->scored_with = scored_with(config_.eval);
    validation_ = facts_of("val", scored_rows("val"));
    rules_->chosen_on = validation_->sha256;
    add_split("val", val, nullptr);
    if (facts_.out_of_fold)
      log_warning(std::string("[ensemble] ") + kChosenOutOfFold +
                  ". Hint: where that matters, hold one validation list back "
                  "from all members (data.val_list)");
  }
  void write_model() {
    std::vector<fs::path> files;
    for (const auto& m : members_) files.push_back(m.model);
    const auto sums = write_ensemble(files, facts_.out_of_fold, rules_,
                                     folder_.file("model.safetensors"));
    std::map<std::string, std::string> named;  // by SHA-256
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& m = members_[i];
      facts_.members.push_back(
          {m.name, sums[i], score_of(m, "val"), score_of(m, "test"), {}});
      const auto [known, is_new] = named.try_emplace(sums[i], m.name);
      if (!is_new)
        log_warning("[ensemble] " + m.name + " has the network of " +
                    known->second + ", which counts twice");
    }
  }
  void score_test() {
    if (!have_one_test(members_)) return;
    const auto tables = tables_of(members_, "test");
    if (tables.empty()) return;
    const Predictions test = mean_of_tables(tables);
    check_test(test, rows_);
    warn_of_fewer_scores(test);
    add_split("test", test, rules_ ? &*rules_ : nullptr);
    facts_.spreads = spreads_of(test);
    std::vector<const Predictions*> members, ensemble;
    for (size_t i = 0; i < tables.size(); ++i) {
      facts_.members[i].difference =
          compare(test, tables[i], config_.eval.findings, draws_)
              .mean_difference;
      members.push_back(&tables[i]);
      ensemble.push_back(&test);
    }
    const auto all = compare_recipes(members, ensemble, draws_);
    facts_.difference = all.mean.value;
    facts_.interval = all.mean.of_networks;
  }
  void finish() {
    facts_.splits = {facts_of("train", rows_),
                     validation_.value_or(facts_of("val", rows_)),
                     facts_of("test", rows_)};
    write_splits_csv(folder_.file("split.csv"), rows_);
    folder_.write("config.yaml", config_yaml(config_));
    std::vector<Json> of_members;
    for (const auto& m : members_) of_members.push_back(m.results);
    write_ensemble_results(folder_.hidden(), of_members, facts_, scores_);
    write_report(folder_.hidden());
    folder_.commit();
  }

 private:
  // Each image once, of whichever members have it.
  std::vector<SplitRow> scored_rows(const std::string& split) const {
    std::vector<SplitRow> rows;
    std::set<std::string> images;
    for (const auto& m : members_)
      for (const auto& row : m.rows)
        if (row.split == split && images.insert(row.image).second)
          rows.push_back(row);
    return rows;
  }
  static EnsembleMember::Score score_of(const Member& member,
                                        const std::string& split) {
    const std::string place = "/evaluations/" + split;
    const Json& auroc = in_results(member, place + "/mean_auroc");
    const Json& findings = in_results(member, place + "/findings_in_mean");
    EnsembleMember::Score score;
    if (auroc.is_number()) score.auroc = auroc.get<double>();
    if (findings.is_number_unsigned()) score.findings = findings;
    return score;
  }
  void add_split(const std::string& name, const Predictions& predictions,
                 const DecisionRules* rules) {
    const std::string table = predictions_csv(predictions);
    folder_.write("predictions_" + name + ".csv", table);
    SplitScores& scores = scores_.emplace_back(SplitScores{
        name, score(predictions, config_.eval.findings),
        facts_of(name, scored_rows(name)).sha256, sha256_hex(table)});
    // That of a training is of images, and these tables have studies.
    if (predictions.by == ScoredBy::kImage)
      scores.scores.loss = mean_loss(predictions);
    add_figures(predictions, config_.eval.findings, rules, draws_, scores);
  }

  std::vector<Member> members_;
  std::vector<SplitRow> rows_;
  std::string name_;
  Config config_;  // the first one's, without a fold and its folder
  ExportFolder folder_;
  BootstrapOptions draws_;
  std::optional<DecisionRules> rules_;
  std::optional<SplitFacts> validation_;  // that was scored
  EnsembleFacts facts_;
  std::vector<SplitScores> scores_;
};

int make_ensemble(const EnsembleOptions& options) {
  const StorageWait files(timeout_of_start({}), "making " + options.out);
  hide_from_others();
  Ensemble ensemble(ensemble_members(options.runs), options);
  ensemble.score_validation();
  ensemble.write_model();
  ensemble.score_test();
  ensemble.finish();
  std::cout << ensemble_text(read_results(options.out)) << std::flush;
  log_info("ensemble " + options.out + "; its page is " +
           (fs::path(options.out) / "report.html").string());
  return 0;
}

}  // namespace

void add_ensemble(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "ensemble",
      "several runs as one: the mean of their logits, in a run folder");
  auto options = std::make_shared<EnsembleOptions>();
  command
      ->add_option("runs", options->runs,
                   "run folders, or a folder of runs as a sweep or folds "
                   "leave it")
      ->check(in_file_system())
      ->required();
  command
      ->add_option("--out", options->out,
                   "folder to write, new or empty: evaluate, predict, export "
                   "and report take it as a run")
      ->required()
      ->check(in_file_system());
  command->callback([&invocation, options] {
    invocation.run = [options] { return make_ensemble(*options); };
  });
}

}  // namespace chexnet
