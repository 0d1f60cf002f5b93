#include "predict_options.hpp"

#include <array>

#include "chexnet/app/run_options.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"
#include "model_file.hpp"
#include "scored_data_check.hpp"

namespace chexnet {
namespace {

// With another preprocessing, network or list of findings the scores would not
// be this model's.
void refuse_another_model(const Config& own, const Config& asked) {
  static constexpr std::array kOfTheModel = {
      "data.resize",      "data.eval_resize", "data.crop",
      "data.resize_kind", "data.jpeg_scale",  "data.mean",
      "data.std",         "data.findings",    "model.arch"};
  for (const char* key : kOfTheModel) {
    const ConfigOption& option = *find_option(key);
    const std::string is = option_text(option, own);
    if (option_text(option, asked) != is)
      throw ConfigError(
          "[predict] --set {}: the model was trained with {}, and with "
          "anything else its scores would not be its own. Hint: leave this "
          "--set away",
          key, is);
  }
}

}  // namespace

bool PredictOptions::reads_stdin() const {
  return std::ranges::any_of(inputs, [](const std::string& place) {
    return place == "-" || place == "@-" || place == "@/dev/stdin" ||
           place == "@/dev/fd/0";
  });
}

std::string PredictOptions::own_descriptor() const {
  for (const auto& place : inputs)
    if (place.starts_with("@/dev/fd/") && place != "@/dev/fd/0")
      return place.substr(1);
  return "";
}

PredictFolders PredictOptions::folders() const {
  return {heat_maps.folder, dicom};
}

Config predict_config(const std::filesystem::path& file,
                      const ModelMetadata& metadata,
                      const PredictOptions& options, Strings& variables) {
  const auto of_options = [&options](Config& c) {
    if (options.ranks > 0) c.launch.ranks = options.ranks;
    // A damaged image is a row of the result, however many there are.
    c.data.corrupt = {.skip = true, .limit = 1};
  };
  Config config =
      model_config(file, metadata, {options.set, &variables, of_options});
  refuse_another_model(model_config(file, metadata, {}), config);
  return config;
}

void check_features(const ModelMetadata& metadata, const Config& config) {
  if (metadata.members > 1)
    throw ConfigError(
        "[predict] --features: an ensemble has several networks. Hint: name "
        "one of its members");
  if (config.eval.crops != EvalCrops::kOne)
    throw ConfigError(
        "[predict] --features: eval.crops={} has several of an image. Hint: "
        "--set eval.crops=1",
        choice_name(config.eval.crops));
}

std::optional<Decisions> decisions_of(const ModelMetadata& metadata,
                                      const Config& config,
                                      const PredictOptions& options) {
  EvalConfig of_images = config.eval;
  of_images.by = ScoredBy::kImage;
  if (const auto* rules = rules_of_scores(metadata, of_images))
    return Decisions{options.rule,
                     *find_choice<Calibration>(options.calibration),
                     rules->findings};
  return std::nullopt;
}

namespace {

// "--heatmap-findings Mass Nodule": an input is what follows the first.
void refuse_findings_as_inputs(const PredictOptions& options,
                               const Strings& findings) {
  std::error_code ignored;
  for (const auto& input : options.inputs)
    if (!options.heat_maps.findings.empty() && find_finding(findings, input) &&
        !std::filesystem::exists(input, ignored))
      throw ConfigError(
          "[predict] {}: a finding, and no image of that name is there. Hint: "
          "findings are joined by commas: --heatmap-findings {},{}",
          input, options.heat_maps.findings.back(), input);
}

}  // namespace

void check_output_places(const PredictOptions& options,
                         const std::filesystem::path& model,
                         const ModelMetadata& metadata) {
  Strings inputs;
  for (const auto& input : options.inputs)
    inputs.push_back(input.starts_with('@') ? input.substr(1) : input);
  inputs.push_back(model.string());
  inputs.insert(inputs.end(), {options.heat_maps.folder, options.dicom});
  refuse_to_replace(options.out, inputs);
  prepare_own_output(options.out, kProbabilitiesHead);
  check_heat_map_options(options.heat_maps, metadata.findings);
  refuse_findings_as_inputs(options, metadata.findings);
  check_dicom_results(options.dicom);
  check_folders(options.folders());
  for (const auto& input : options.inputs)
    refuse_inside(options.folders(), input);
}

void add_predict_options(CLI::App& command, PredictOptions& options) {
  add_model_option(command, options.model)->required();
  command
      .add_option("input", options.inputs,
                  "images, folders, archives, packs, s3:// places; @FILE: a "
                  "list, one path per line; -: a list on stdin")
      ->required();
  command
      .add_option("--out", options.out,
                  "write image, probabilities, yes or no, and errors to this "
                  "CSV")
      ->check(in_known_store());
  command
      .add_option("--rule", options.rule,
                  "which of the model's thresholds says yes: youden, "
                  "sensitivity or specificity (default youden)")
      ->check(CLI::IsMember({"youden", "sensitivity", "specificity"}));
  command
      .add_option("--calibration", options.calibration,
                  "temperature or isotonic, as fitted on validation (default "
                  "temperature)")
      ->check(CLI::IsMember(choice_names<Calibration>()));
  add_set_option(command, options.set, "the run's config");
  add_ranks_option(command, options.ranks);
  add_heat_map_options(command, options.heat_maps);
  add_dicom_result_options(command, options.dicom);
  command.add_flag("--any-dicom", options.any_dicom,
                   "also DICOM files that are no chest X-ray by their Modality "
                   "or body part");
  auto* json =
      command.add_flag("--json", options.json,
                       "one JSON object per image on stdout, and one of all "
                       "(docs/json.md)");
  command
      .add_flag("--features", options.features,
                "with --json: also what the classifier works on, of each image "
                "the mean of the network's last map")
      ->needs(json)
      ->excludes("--heatmaps")
      ->excludes("--dicom");
}

}  // namespace chexnet
