#include "scored_data_check.hpp"

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/label_counts.hpp"
#include "chexnet/eval/ensemble.hpp"
#include "chexnet/eval/prevalence.hpp"
#include "chexnet/eval/scored_units.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/report/run_summary.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// RUN of RUN/checkpoints/step-…/model.safetensors, or of RUN/model.safetensors
// of an ensemble; empty elsewhere.
fs::path run_of(const fs::path& model) {
  if (is_ensemble_folder(model.parent_path())) return model.parent_path();
  const fs::path checkpoints = model.parent_path().parent_path();
  return checkpoints.filename() == "checkpoints" ? checkpoints.parent_path()
                                                 : fs::path();
}

fs::path split_csv_of(const fs::path& model) {
  const fs::path csv = run_of(model) / "split.csv";
  return !run_of(model).empty() && fs::exists(csv) ? csv : fs::path();
}

void check_overlap(const TrainingOverlap& overlap, const ScoredData& data,
                   bool allowed) {
  const Split& scored = data.set.split;
  if (overlap.of_patients == 0) return;
  const std::string what =
      "[evaluate] " + std::to_string(overlap.of_patients) + " of " +
      counted(std::ssize(scored.rows), "image") + " of " + scored.name +
      (scored.rows.size() == 1 ? " is" : " are") +
      " of patients that the model was trained on (" +
      std::to_string(overlap.images) +
      " have names of training images): figures of them are too good";
  if (data.split.empty() || allowed) {
    log_warning(what);
    return;
  }
  throw DataError(
      "{}. Hint: the lists, table and data.split_seed of the run, or "
      "data.allow_patient_leak=true",
      what);
}

void check_known_split(const ScoredData& data, const ModelMetadata& metadata,
                       bool overlap_was_checked) {
  const auto known = metadata.splits.find(data.split);
  if (known == metadata.splits.end() || known->second == data.set.split.sha256)
    return;
  log_warning("[evaluate] the " + data.split +
              " split is not the one that the model file names (other images, "
              "or another order)" +
              (overlap_was_checked
                   ? ""
                   : "; whether the model was trained on its patients cannot "
                     "be told without the run's split.csv"));
}

void check_prevalence(const TestSet& set, const ModelMetadata& metadata) {
  const Manifest& manifest = set.dataset.manifest;
  const LabelCounts counts =
      count_labels(manifest, set.split.rows, Labels::kScored);
  std::vector<LabeledImages> labeled, usual = metadata.trained_on;
  const bool by_training = !usual.empty();
  if (!by_training && metadata.rules)
    for (const auto& rule : metadata.rules->findings)
      usual.push_back({rule.finding, rule.positives, rule.negatives});
  for (size_t k = 0; k < manifest.finding_count(); ++k)
    labeled.push_back(
        {manifest.findings[k], counts.positives[k], counts.negatives[k]});
  const std::string where = by_training ? "training" : "validation";
  const std::string unlike = unlike_prevalence(usual, where, labeled);
  if (!unlike.empty())
    log_warning("[evaluate] positives of " + set.split.name +
                " are far from as frequent as in " + where + ": " + unlike +
                ". Hint: are columns or labels swapped? If not, thresholds "
                "and calibration need not fit these images");
}

// Of the run's own sets alone: for other tables this is unknown.
void warn_of_pictures_in_two_splits(const fs::path& model) {
  std::error_code error;
  const fs::path run = run_of(model);
  if (run.empty() || !fs::exists(run / "results.json", error)) return;
  try {
    const std::string shared = shared_pictures_text(read_results(run));
    if (!shared.empty())
      log_warning("[evaluate] the run's figures: " + shared +
                  ". Hint: `inspect` lists them");
  } catch (const CheckpointError& e) {
    log_warning(e.what());  // the scores do not need that file
  }
}

}  // namespace

TrainingOverlap check_scored_data(const ScoredData& scored,
                                  const Config& config,
                                  const ModelMetadata& metadata,
                                  const fs::path& model) {
  const fs::path split_csv = split_csv_of(model);
  TrainingOverlap overlap;
  if (!split_csv.empty())
    overlap =
        training_overlap(split_csv, config.privacy, scored.set.dataset.manifest,
                         scored.set.split.rows);
  else if (scored.split != "train")
    log_info(
        "whether the model was trained on patients of these images cannot be "
        "told: it lies outside of its run, or the run has no split.csv");
  if (!split_csv.empty() && !overlap.knows_patients &&
      scored.set.dataset.manifest.knows_patients)
    log_warning("[evaluate] " + split_csv.string() +
                " calls patients by pseudonyms of a key that is not at hand: "
                "only images, not patients, were looked for among those "
                "trained on. Hint: privacy.key names its file");
  if (scored.split == "train")
    log_warning(
        "[evaluate] these are the images that the model was trained on: "
        "figures of them are too good");
  else
    check_overlap(overlap, scored, config.data.allow_patient_leak);
  if (scored.split.empty()) {  // tables are others on purpose
    check_prevalence(scored.set, metadata);
    return overlap;
  }
  check_known_split(scored, metadata, !split_csv.empty());
  if (scored.split != "train") warn_of_pictures_in_two_splits(model);
  const Manifest& manifest = scored.set.dataset.manifest;
  if (!metadata.manifest_sha256.empty() &&
      metadata.manifest_sha256 != manifest.sha256)
    log_warning("[evaluate] " + manifest.path +
                " is not the file that the model was trained with: labels may "
                "differ (of ChestX-ray14 there are two versions)");
  return overlap;
}

void warn_of_another_models_table(const std::string& table,
                                  const fs::path& model) {
  const fs::path run = run_of(model);
  if (run.empty()) {
    log_info("whether the scores of " + table +
             " are of this very model cannot be told: it lies outside of its "
             "run");
    return;
  }
  const std::string sum = sha256_file(table);
  for (const char* split : {"val", "test", "train"}) {
    const fs::path own = run / ("predictions_" + std::string(split) + ".csv");
    std::error_code error;
    if (fs::exists(own, error) && sha256_file(own.string()) == sum) return;
  }
  log_warning("[thresholds] " + table +
              " is none of the tables that the model's run wrote: are its "
              "scores of this very model? Thresholds and calibration of "
              "another one do not fit");
}

const DecisionRules* rules_of_scores(const ModelMetadata& metadata,
                                     const EvalConfig& config) {
  const std::string own = scored_with(config);
  if (!metadata.rules || metadata.rules->scored_with == own)
    return metadata.rules ? &*metadata.rules : nullptr;
  log_warning("[thresholds] the model's thresholds and calibration are of " +
              metadata.rules->scored_with + ", and these scores of " + own +
              ": they are not used");
  return nullptr;
}

const DecisionRules* rules_for(const TestSet& set,
                               const TrainingOverlap& overlap,
                               const Config& config,
                               const ModelMetadata& metadata) {
  if (!metadata.rules) {
    log_info(
        "no operating points: the model was not scored on validation. Hint: "
        "--choose-on CSV, or data.val_fraction in training");
    return nullptr;
  }
  if (metadata.rules->chosen_on == set.split.sha256) {
    log_info(
        "no operating points: the model's thresholds were chosen on these "
        "very images");
    return nullptr;
  }
  if (overlap.of_validation > 0) {
    log_info("no operating points: the model's thresholds were chosen on " +
             std::to_string(overlap.of_validation) + " of these images");
    return nullptr;
  }
  if (metadata.out_of_fold)
    log_warning(std::string("[thresholds] ") + kChosenOutOfFold);
  return rules_of_scores(metadata, config.eval);
}

}  // namespace chexnet
