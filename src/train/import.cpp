#include "chexnet/train/import.hpp"

#include <string>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/model_card.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

void refuse_own_model(const SafetensorsFile& file, const fs::path& path) {
  const auto about = file.metadata().find("chexnet");
  if (about == file.metadata().end() ||
      about->second.find("\"preprocessing\"") == std::string::npos)
    return;
  throw CheckpointError(
      "[import] {}: is a model of this program already. Hint: predict, "
      "evaluate "
      "and model.weights take it as it is",
      path.string());
}

// By a tensor that only it has, or no smaller one of its family.
Architecture architecture_of(const ForeignWeights& file) {
  using enum Architecture;
  for (const auto& [arch, tensor] : {
           std::pair(kDenseNet201, "features.denseblock3.denselayer48."),
           {kDenseNet169, "features.denseblock4.denselayer32."},
           {kResNet101, "layer3.22."},
           {kResNet50, "layer3.5."},
       })
    if (file.find(std::string(tensor) + "conv2.weight") != nullptr) return arch;
  return kDenseNet121;
}

// How many outputs the classifier has; 0 where there is none.
size_t outputs_of(const ForeignWeights& file) {
  for (const char* name : {"classifier.weight", "fc.weight"})
    if (const NamedArray* weight = file.find(name))
      return weight->shape.empty() ? 0 : static_cast<size_t>(weight->shape[0]);
  return 0;
}

void check_outputs(const std::vector<std::string>& outputs, size_t there,
                   const fs::path& path) {
  if (there == 0)
    throw CheckpointError(
        "[import] {}: has no classifier, so it answers nothing. Hint: "
        "model.weights takes it to train one",
        path.string());
  if (outputs.empty())
    throw ConfigError(
        "[import] {}: does not name the {} of its classifier. Hint: "
        "--findings Atelectasis,Cardiomegaly,… in their order, or a file with "
        "a "
        "line for each; {} for one that is left out",
        path.string(), counted(static_cast<int64_t>(there), "output"),
        kLeftOut);
  if (outputs.size() != there)
    throw ConfigError(
        "[import] --findings: names {}, and the classifier of {} has {}. Hint: "
        "one name for each, in their order; {} for one that is left out",
        counted(static_cast<int64_t>(outputs.size()), "output"), path.string(),
        there, kLeftOut);
}

std::vector<std::string> findings_among(
    const std::vector<std::string>& outputs) {
  std::vector<std::string> findings;
  for (const auto& name : outputs) {
    if (name.empty() || printable(name) != name)
      throw ConfigError(
          "[import] --findings: '{}' is no name. Hint: {} for an output that "
          "is "
          "left out",
          printable(name), kLeftOut);
    if (name != kLeftOut) findings.push_back(name);
  }
  if (findings.empty())
    throw ConfigError("[import] --findings: leaves out all. Hint: one or more");
  refuse_doubled(findings, "--findings");
  return findings;
}

}  // namespace

ImportedNetwork import_network(const fs::path& weights,
                               const std::vector<std::string>& outputs,
                               const ConfigOfNetwork& config_of,
                               const fs::path& into) {
  const SafetensorsFile file(weights);
  const std::string origin = weights.string();
  refuse_own_model(file, weights);
  const ForeignWeights foreign(file, origin, {});
  ImportedNetwork imported;
  imported.config = config_of(architecture_of(foreign));
  const DataConfig& data = imported.config.data;
  const LoadOptions options{
      {data.mean, data.std},
      outputs.empty() ? findings_of(file, origin) : outputs};
  check_outputs(options.outputs, outputs_of(foreign), weights);
  imported.findings = findings_among(options.outputs);
  Network network(network_spec(imported.config.model.arch),
                  static_cast<int64_t>(imported.findings.size()), {});
  imported.report = load_weights(file, origin, imported.findings,
                                 network.parameters(), options);
  std::erase(imported.report.left_out, kLeftOut);
  if (!imported.report.missing.empty())  // of the classifier
    throw CheckpointError("[import] {}: lacks {}. Hint: take the whole network",
                          origin, listed(imported.report.missing));
  save_weights(
      into, network.parameters(), 0,
      {{"format", "pt"},
       {"chexnet", model_description(imported.config, imported.findings)}});
  return imported;
}

}  // namespace chexnet
