#include "chexnet/train/import.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/model_metadata.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

void refuse_own_model(const SafetensorsFile& file, const fs::path& path) {
  const auto about = file.metadata().find("chexnet");
  if (about == file.metadata().end() ||
      !nlohmann::json::parse(about->second, nullptr, false)
           .contains("preprocessing"))
    return;
  throw CheckpointError(
      "[import] {}: is a model of this program already. Hint: predict, "
      "evaluate and model.weights take it as it is",
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

// What the outputs of the classifier in `file` are called.
struct OutputNames {
  std::vector<std::string> names;
  fs::path file;
  bool of_file;  // it names them itself; else --findings does

  // Whether the user or the file is wrong decides the exit code.
  [[noreturn]] void refuse(const std::string& why) const {
    if (of_file) throw CheckpointError("[import] {}: {}", file.string(), why);
    throw ConfigError("[import] --findings: {}", why);
  }
};

void check_number(const OutputNames& outputs, size_t there) {
  if (there == 0)
    throw CheckpointError(
        "[import] {}: has no classifier, so it answers nothing. Hint: "
        "model.weights takes it to train one",
        outputs.file.string());
  if (outputs.names.empty())
    throw ConfigError(
        "[import] {}: does not name the {} of its classifier. Hint: "
        "--findings Atelectasis,Cardiomegaly,… in their order, or a file with "
        "a line for each; {} for one that is left out",
        outputs.file.string(), counted(static_cast<int64_t>(there), "output"),
        kLeftOut);
  if (outputs.names.size() != there)
    outputs.refuse(formatted(
        "names {}, and the classifier of {} has {}. Hint: --findings with one "
        "name for each, in their order; {} for one that is left out",
        counted(std::ssize(outputs.names), "output"), outputs.file.string(),
        there, kLeftOut));
}

std::vector<std::string> findings_among(const OutputNames& outputs) {
  std::vector<std::string> findings;
  for (const auto& name : outputs.names) {
    if (name.empty() || printable(name) != name || line_not_utf8(name) > 0)
      outputs.refuse(
          formatted("'{}' is no name. Hint: {} in --findings for an output "
                    "that is left out",
                    printable(name), kLeftOut));
    if (name != kLeftOut) findings.push_back(name);
  }
  if (findings.empty())
    outputs.refuse("leaves out all. Hint: name one or more");
  if (const auto doubled = doubled_finding(findings); !doubled.empty())
    outputs.refuse(doubled + ". Hint: each finding has one output");
  return findings;
}

// Numbers that are no weights, as of a quantized file.
void check_types(const ForeignWeights& file, const fs::path& path) {
  for (const auto& array : file.arrays())
    if ((array.type == ElementType::kU8 || array.type == ElementType::kI64) &&
        !array.name.ends_with(".num_batches_tracked"))
      throw CheckpointError(
          "[import] {}: {} is of whole numbers. Hint: a network that was not "
          "quantized",
          path.string(), printable(array.name, ""));
}

// With tensors left over it would compute, too, but they are of another
// network, or a larger one.
void refuse_rest(const LoadReport& report, const fs::path& path) {
  std::vector<std::string> rest;
  for (const auto& name : report.extra)
    if (name != "op_threshs") rest.push_back(printable(name, ""));
  if (!rest.empty())
    throw CheckpointError(
        "[import] {}: is another network: {} that DenseNets and ResNets of "
        "this program do not have: {}. Hint: docs/config.md, model.arch, lists "
        "them",
        path.string(), counted(static_cast<int64_t>(rest.size()), "tensor"),
        listed(rest, 3));
  if (!report.missing.empty())  // of the classifier
    throw CheckpointError("[import] {}: lacks {}. Hint: take the whole network",
                          path.string(), listed(report.missing));
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
  const OutputNames named{outputs.empty() ? findings_of(file, origin) : outputs,
                          weights, outputs.empty()};
  check_number(named, outputs_of(foreign));
  check_types(foreign, weights);
  imported.findings = findings_among(named);
  Network network(network_spec(imported.config.model.arch),
                  static_cast<int64_t>(imported.findings.size()), {});
  imported.report =
      load_weights(file, origin, imported.findings, network.parameters(),
                   {{data.mean, data.std}, named.names});
  std::erase(imported.report.left_out, kLeftOut);
  refuse_rest(imported.report, weights);
  save_weights(
      into, network.parameters(), 0,
      {{"format", "pt"},
       {"chexnet", model_metadata(imported.config, imported.findings)}});
  return imported;
}

}  // namespace chexnet
