// Why a page has no such section. Causes come first: where no threshold was
// chosen, four sections are missing for one reason, which is said once.
#include <utility>

#include "chexnet/core/json_fault.hpp"
#include "chexnet/core/read_file.hpp"
#include "history.hpp"
#include "page.hpp"
#include "report_sections.hpp"
#include "run_examples.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

bool has_images(const Json& results, const char* split) {
  const Json& facts = member(member(member(results, "data"), "splits"), split);
  return number(facts, "images").value_or(0) > 0;
}

bool is_scored(const Json& results, const std::string& split) {
  return !member(member(results, "evaluations"), split).is_null();
}

std::string why_no_thresholds(const Json& results, const std::string& split) {
  if (split == "val")
    return "thresholds are chosen on these very images, so on them they would "
           "prove nothing";
  return has_images(results, "val")
             ? "the scored weights were not evaluated on the validation split, "
               "and thresholds are chosen there alone"
             : "the run has no validation images, and thresholds are chosen on "
               "those alone (data.val_list or data.val_fraction)";
}

void add_split_gaps(const Json& results, std::vector<std::string>& gaps) {
  for (const auto& [split, name] :
       {std::pair{"test", "Test scores"}, {"val", "Validation scores"}}) {
    if (is_scored(results, split)) continue;
    gaps.push_back(std::string(name) + ": " +
                   (has_images(results, split)
                        ? "the split has images, but eval.splits does not "
                          "name it."
                        : "the run has no images of that split."));
  }
}

void add_training_gaps(const fs::path& folder, const Json& results,
                       std::vector<std::string>& gaps) {
  std::error_code error;
  if (!fs::exists(folder / "metrics.jsonl", error)) {
    gaps.emplace_back(
        "Curves of the training: metrics.jsonl is not in the run folder.");
    return;
  }
  const History history = history_of(folder);
  if (history.train_loss.points.size() < 2)
    gaps.emplace_back(
        "Curves of the training loss: metrics.jsonl has fewer than two lines "
        "of it (run.log_every).");
  if (history.val_loss.points.empty())
    gaps.push_back("Curves of validation: metrics.jsonl has none, as " +
                   std::string(has_images(results, "val")
                                   ? "no evaluation took place during training."
                                   : "the run has no validation images."));
}

std::string why_no_pictures(const fs::path& folder) {
  const fs::path list = folder / "examples" / "examples.json";
  std::error_code error;
  if (!fs::exists(list, error))
    return "examples/examples.json is not in the run folder: none were drawn "
           "(eval.examples: 0, eval.by is not image, or no image is a clear "
           "case), or it was removed.";
  if (const auto fault = json_fault(read_text(list)); fault.line > 0)
    return "examples/examples.json is no JSON in line " +
           std::to_string(fault.line) + ": " + fault.what + ".";
  return "examples.json names none that can be shown: small PNG files of the "
         "run's folder examples.";
}

// Of the scores that the page is about.
void add_score_gaps(const Json& results, const std::string& split,
                    const fs::path& folder, bool for_sharing,
                    std::vector<std::string>& gaps) {
  const Json& evaluation = member(member(results, "evaluations"), split);
  if (evaluation.is_null()) return;
  if (const auto problem = why_no_curves(folder, evaluation, split);
      !problem.empty())
    gaps.push_back("ROC, precision and recall, reliability: " + problem);
  const bool has_points = !operating_section(evaluation).empty();
  if (!has_points)
    gaps.push_back(
        "Operating points, calibration, groups of patients, "
        "examples with heat maps: " +
        why_no_thresholds(results, split) + ".");
  if (has_points && calibration_section(evaluation).empty())
    gaps.emplace_back(
        "Calibration: none was fitted on validation, for want of both kinds "
        "of images or as scores are no probabilities.");
  if (is_ensemble(results)) return;
  if (has_points && subgroups_section(evaluation).empty())
    gaps.emplace_back(
        member(evaluation, "subgroups").empty()
            ? "Groups of patients: the table tells neither sex, view nor age."
            : "Groups of patients: none has ten positive images of a finding.");
  if (has_points && !for_sharing && read_examples(folder).empty())
    gaps.push_back("Examples with heat maps: " + why_no_pictures(folder));
}

}  // namespace

std::string gaps_section(const Json& results, const std::string& split,
                         const fs::path& folder, bool for_sharing) {
  std::vector<std::string> gaps;
  add_split_gaps(results, gaps);
  add_score_gaps(results, split, folder, for_sharing, gaps);
  if (is_ensemble(results))
    gaps.emplace_back(
        "Groups of patients, examples with heat maps, curves of the training: "
        "the members' own pages have theirs; `evaluate --by` and `predict "
        "--heatmaps` make the ensemble's.");
  else
    add_training_gaps(folder, results, gaps);
  if (for_sharing)
    gaps.emplace_back(
        "Pictures, paths, names of hosts and users, the command of the run: "
        "left out, as this page may be passed on.");
  return gaps.empty() ? "" : html_list(gaps);
}

}  // namespace chexnet
