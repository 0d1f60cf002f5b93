#include "chexnet/train/model_metadata.hpp"

#include <torch/headeronly/version.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/safetensors.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/image/crop.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/label_counts.hpp"
#include "chexnet/model/weights.hpp"
#include "chexnet/train/ensemble_file.hpp"
#include "metadata_json.hpp"

namespace chexnet {
namespace {

constexpr const char* kLabeled = "labeled";  // finding: [positives, negatives]

}  // namespace

nlohmann::json preprocessing_json(const DataConfig& data) {
  const Preprocessing evaluated = evaluation_preprocessing(data);
  return {
      {"resize", data.resize},
      {"eval_resize", data.eval_resize},
      {"crop", data.crop},
      {"eval_crop_begin", center_crop_begin(evaluated.resize, evaluated.crop)},
      {"resize_kind", choice_name(data.resize_kind)},
      {"jpeg",
       data.jpeg_scale == JpegScale::kAuto
           ? "scaled in the DCT by 1/2, 1/4 or 1/8 down to the wanted size"
           : "decoded at full size"},
      {"mean", data.mean},
      {"std", data.std}};
}

namespace {

nlohmann::json described(const Config& config,
                         const std::vector<std::string>& findings) {
  return {{"arch", choice_name(config.model.arch)},
          {"findings", findings},
          {"preprocessing", preprocessing_json(config.data)},
          {"config", config_yaml(without_places(config))},
          {"versions",
           {{"chexnet-train", CHEXNET_VERSION}, {"torch", TORCH_VERSION}}},
          {"notice", "research use, not a medical device"}};
}

}  // namespace

std::string model_metadata(const Config& config,
                           const std::vector<std::string>& findings) {
  return json_text(described(config, findings));
}

std::string model_metadata(const Config& config, const Dataset& dataset) {
  nlohmann::json splits;
  for (const Split* split :
       {&dataset.splits.train, &dataset.splits.val, &dataset.splits.test})
    splits[split->name] = {{"images", split->rows.size()},
                           {"sha256", split->sha256}};
  const Manifest& manifest = dataset.manifest;
  const LabelCounts counts =
      count_labels(manifest, dataset.splits.train.rows, Labels::kScored);
  nlohmann::json& labeled = splits["train"][kLabeled];
  for (size_t k = 0; k < manifest.finding_count(); ++k)
    labeled[manifest.findings[k]] = {counts.positives[k], counts.negatives[k]};
  nlohmann::json json = described(config, manifest.findings);
  json["manifest_sha256"] = manifest.sha256;
  json["finding_names_sha256"] = manifest.finding_names_sha256;
  json["splits"] = splits;
  return json_text(json);
}

namespace {

// Before a network of so many outputs is made.
void check_classifier(const SafetensorsFile& file, size_t findings,
                      const std::filesystem::path& path) {
  for (const char* name : {"classifier.weight", "fc.weight"}) {
    const NamedArray* weight = file.find(name);
    if (weight == nullptr || weight->shape.empty()) continue;
    if (std::cmp_not_equal(weight->shape[0], findings))
      throw CheckpointError(
          "[checkpoint] {}: names {}, and its {} has {}. Hint: "
          "the file is damaged; take it from the run again",
          path.string(), counted(static_cast<int64_t>(findings), "finding"),
          name, counted(weight->shape[0], "row"));
  }
}

}  // namespace

nlohmann::json description_of(const SafetensorsFile& file,
                              const std::filesystem::path& path) {
  const auto found = file.metadata().find("chexnet");
  auto json = found == file.metadata().end()
                  ? nlohmann::json(nlohmann::json::value_t::discarded)
                  : nlohmann::json::parse(found->second, nullptr, false);
  const auto has = [&](const char* key, auto type) {
    return json.contains(key) && json[key].type() == type;
  };
  using Type = nlohmann::json::value_t;
  if (!has("arch", Type::string) || !has("findings", Type::array) ||
      !has("config", Type::string))
    throw CheckpointError(
        "[checkpoint] {}: is no model of this program: its findings and "
        "preprocessing are not known. Hint: for plain weights use "
        "model.weights",
        path.string());
  check_classifier(file, json["findings"].size(), path);
  return json;
}

nlohmann::json field(const nlohmann::json& description, const char* name) {
  return description.value(name, nlohmann::json());
}

namespace {

constexpr const char* kRules = "chexnet.decision_rules";
constexpr const char* kRulesSum = "chexnet.decision_rules_sha256";  // its text

std::vector<NamedArray> in_order_of_data(const SafetensorsFile& file) {
  auto arrays = file.arrays();
  std::ranges::sort(arrays, std::less<>(),
                    [](const NamedArray& a) { return a.data.data(); });
  return arrays;
}

// Of all that decides what a score means: every weight by its name, the
// network, its findings in their order, its input.
std::string model_sha256(std::vector<NamedArray> arrays,
                         const nlohmann::json& description) {
  const nlohmann::json meaning = {
      {"arch", field(description, "arch")},
      {"findings", field(description, "findings")},
      {"preprocessing", field(description, "preprocessing")}};
  Sha256 sum;
  sum.update(json_text(meaning));
  std::ranges::sort(arrays, {}, &NamedArray::name);
  for (const NamedArray& array : arrays) {
    sum.update("\n" + array.name + "\n");
    sum.update(array.data);
  }
  return sum.hex();
}

void refuse_rules_of_another(const DecisionRules& rules,
                             const std::vector<std::string>& findings,
                             const std::string& sha256,
                             const std::filesystem::path& path) {
  const std::string hint =
      ". Hint: the file was changed after it was written; take the model from "
      "its run folder";
  std::vector<std::string> names;
  for (const auto& finding : rules.findings) names.push_back(finding.finding);
  if (names != findings)
    throw CheckpointError(
        "[checkpoint] {}: its thresholds are of {}, its outputs in this order: "
        "{}{}",
        path.string(), listed(names), listed(findings), hint);
  if (rules.model_sha256 != sha256)
    throw CheckpointError(
        "[checkpoint] {}: its thresholds and calibration were chosen for a "
        "model with other weights, names or preprocessing (SHA-256 {}, this "
        "one {}){}",
        path.string(), rules.model_sha256.substr(0, 12), sha256.substr(0, 12),
        hint);
}

// A threshold changed by hand is as plausible as the chosen one.
void check_rules_sum(const Metadata& metadata,
                     const std::filesystem::path& path) {
  const auto sum = metadata.find(kRulesSum);
  if (sum == metadata.end()) {
    log_warning(
        "[checkpoint] " + path.string() +
        ": its thresholds and calibration have no SHA-256: had they been "
        "edited, nobody could tell. Hint: a run writes one with each "
        "validation; thresholds can be chosen anew by evaluate --choose-on");
    return;
  }
  if (sum->second != sha256_hex(metadata.at(kRules)))
    throw CheckpointError(
        "[checkpoint] {}: its thresholds and calibration are not those that "
        "were chosen for it (their SHA-256 differs). Hint: the file was "
        "changed after it was written; take the model from its run folder",
        path.string());
}

// Names become columns, tags and lines of a terminal.
void check_names(const std::vector<std::string>& findings,
                 const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& what) {
    throw CheckpointError(
        "[checkpoint] {}: its findings {}. Hint: the file was changed",
        path.string(), what);
  };
  if (findings.empty()) refuse("are none");
  if (const auto twice = doubled_finding(findings); !twice.empty())
    refuse("are named twice: " + printable(twice));
  for (const auto& name : findings)
    if (name.empty() || printable(name) != name)
      refuse("have a name with control characters: " + printable(name));
}

// Else a member would be left out in silence.
void check_members(const SafetensorsFile& file, size_t members,
                   const std::filesystem::path& path) {
  std::set<std::string> there;
  for (const auto& array : file.arrays())
    there.insert(array.name.substr(0, array.name.find('/') + 1));
  std::set<std::string> named;
  for (size_t m = 0; m < members; ++m) named.insert(member_prefix(m));
  if (members < 2 || there != named)
    throw CheckpointError(
        "[checkpoint] {}: names {} of an ensemble and holds weights of {}. "
        "Hint: the file was changed; make it anew with `chexnet-train "
        "ensemble`",
        path.string(), counted(static_cast<int64_t>(members), "member"),
        there.size());
}

}  // namespace

ModelMetadata read_model_metadata(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const auto json = description_of(file, path);
  ModelMetadata metadata;
  metadata.findings = findings_of(file, path.string());
  check_names(metadata.findings, path);
  try {
    metadata.config = json.at("config");
    metadata.manifest_sha256 = json.value("manifest_sha256", "");
    if (json.contains(kMembers)) {
      metadata.members =
          json.at(kMembers).get<std::vector<std::string>>().size();
      check_members(file, metadata.members, path);
      metadata.out_of_fold = json.at(kOutOfFold);
    }
    const nlohmann::json splits = field(json, "splits");
    for (const auto& [name, split] : splits.items())
      if (split.is_object()) metadata.splits[name] = split.value("sha256", "");
    const auto labeled = nlohmann::json::json_pointer("/train") / kLabeled;
    if (splits.contains(labeled))
      for (const auto& [finding, counts] : splits.at(labeled).items())
        metadata.trained_on.push_back(
            {finding, counts.at(0).get<size_t>(), counts.at(1).get<size_t>()});
  } catch (const nlohmann::json::exception& e) {
    throw CheckpointError(
        "[checkpoint] {}: its description is damaged: {}. Hint: the file was "
        "changed",
        path.string(), e.what());
  }
  const auto rules = file.metadata().find(kRules);
  if (rules == file.metadata().end()) return metadata;
  metadata.rules = parse_decision_rules(rules->second, path.string());
  refuse_rules_of_another(*metadata.rules, metadata.findings,
                          model_sha256(file.arrays(), json), path);
  check_rules_sum(file.metadata(), path);
  return metadata;
}

void add_rules(DecisionRules rules, const std::vector<NamedArray>& arrays,
               const nlohmann::json& description, Metadata& metadata) {
  rules.model_sha256 = model_sha256(arrays, description);
  metadata[kRules] = decision_rules_json(rules);
  metadata[kRulesSum] = sha256_hex(metadata[kRules]);
}

void write_decision_rules(const std::filesystem::path& from,
                          const std::filesystem::path& into,
                          DecisionRules rules) {
  const SafetensorsFile file(from);
  Metadata metadata = file.metadata();
  add_rules(std::move(rules), file.arrays(), description_of(file, from),
            metadata);
  write_safetensors(into, in_order_of_data(file), metadata);
}

}  // namespace chexnet
