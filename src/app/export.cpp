// export: a trained network for other people's software, in a folder with all
// that is needed to use it and to find out that it is the same.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/model/formats/export_folder.hpp"
#include "chexnet/model/formats/export_texts.hpp"
#include "chexnet/model/formats/named_weights.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
#include "chexnet/train/ensemble_file.hpp"
#include "model_file.hpp"
#include "scored_data_check.hpp"
#include "test_vectors.hpp"

namespace chexnet {
namespace {

const std::map<std::string, ModelInput> kInputs = {
    {"gray", ModelInput::kGray}, {"float", ModelInput::kFloat}};
const std::map<std::string, ModelOutput> kOutputs = {
    {"probabilities", ModelOutput::kProbabilities},
    {"logits", ModelOutput::kLogits}};
const std::map<std::string, WeightsFor> kLibraries = {
    {"torchvision", WeightsFor::kTorchvision},
    {"torchxrayvision", WeightsFor::kTorchxrayvision}};

constexpr int kVectors = 8;  // drawings that go along

struct ExportOptions {
  std::string model, out, input = "gray", output = "probabilities", weights;
  bool json = false;
};

OnnxOptions onnx_options(const ModelDescription& model,
                         const ExportedFile& file) {
  return {.input = file.input,
          .output = file.output,
          .size = model.crop,
          .mean = model.mean,
          .std = model.std,
          .metadata = {{"chexnet", model.text},
                       {"findings", json_text(nlohmann::json(model.findings))},
                       {"notice", "research use, not a medical device"}}};
}

// The file of the network. Libraries' networks take scaled channels and give
// logits.
ExportedFile write_model(const ExportOptions& options,
                         const SafetensorsFile& weights, size_t members,
                         const ModelDescription& model,
                         const std::string& origin, ExportFolder& folder) {
  if (!options.weights.empty()) {
    if (members > 1)
      throw ConfigError(
          "[export] --weights: {} is an ensemble of {} networks. Hint: export "
          "its members, or the ensemble as ONNX",
          origin, members);
    const std::string name = "weights.safetensors";
    const WeightsFor library = kLibraries.at(options.weights);
    write_named_weights(folder.file(name), weights, model, library);
    const ModelInput input = library == WeightsFor::kTorchvision
                                 ? ModelInput::kFloat
                                 : ModelInput::kOneChannel;
    return {name, input, ModelOutput::kLogits};
  }
  ExportedFile file = {"model.onnx", kInputs.at(options.input),
                       kOutputs.at(options.output)};
  std::vector<FloatTensors> tensors;
  for (size_t m = 0; m < members; ++m)
    tensors.push_back(float_tensors(
        members > 1 ? weights.part(member_prefix(m)) : weights, origin));
  folder.write(file.name, onnx_network(network_spec(model.arch), tensors,
                                       onnx_options(model, file)));
  folder.write("config.pbtxt", triton_config(model, file));
  folder.write("labels.txt", labels_text(model));
  return file;
}

void print(const ExportOptions& options, const ModelDescription& model,
           const std::string& origin,
           const std::map<std::string, std::string>& sums) {
  if (options.json)
    std::cout << json_text(Json{{"folder", options.out},
                                {"model", origin},
                                {"arch", model.arch},
                                {"findings", model.findings},
                                {"files", sums},
                                {"vectors", kVectors}})
              << std::endl;
  log_info("[export] " + origin + " to " + options.out + ": " +
           counted(std::ssize(sums), "file") + " and their SHA256SUMS");
}

int export_model(const ExportOptions& options) {
  const StorageWait files(timeout_of_start({}), "exporting " + options.model);
  const auto file = resolve_model(options.model);
  const std::string origin = file.string();
  const ModelMetadata metadata = read_model_metadata(file);
  const SafetensorsFile weights(file);
  const ModelDescription model = model_description(weights, origin);
  ExportFolder folder("export", options.out);
  const auto vectors = make_test_vectors(file, metadata, kVectors, folder);
  const ExportedFile exported =
      write_model(options, weights, metadata.members, model, origin, folder);
  folder.write("preprocessing.json", preprocessing_json(model, exported));
  folder.write("labels.json", labels_json(model, exported));
  // Whoever takes the files scores single crops of single images.
  if (const auto* rules = rules_of_scores(metadata, {}))
    folder.write("thresholds.json", decision_rules_json(*rules) + "\n");
  else if (!metadata.rules)
    log_info("[export] no thresholds: the model was not scored on validation");
  folder.write("vectors.json", test_vectors_json(model, vectors));
  print(options, model, origin, folder.commit());
  return 0;
}

template <class Choice>
CLI::IsMember one_of(const std::map<std::string, Choice>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) names.push_back(name);
  return CLI::IsMember(names);
}

}  // namespace

void add_export(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "export",
      "the trained network as ONNX, or as weights of other libraries");
  auto options = std::make_shared<ExportOptions>();
  add_model_option(*command, options->model)->required();
  command->add_option("--out", options->out, "folder to write, new or empty")
      ->required()
      ->check(in_file_system());
  auto* weights =
      command
          ->add_option("--weights", options->weights,
                       "safetensors that this library loads, in place of ONNX")
          ->check(one_of(kLibraries));
  command
      ->add_option("--input", options->input,
                   "gray: uint8 pixels, scaled in the model; float: "
                   "normalized channels")
      ->check(one_of(kInputs))
      ->excludes(weights)
      ->capture_default_str();
  command->add_option("--output", options->output, "what the model gives")
      ->check(one_of(kOutputs))
      ->excludes(weights)
      ->capture_default_str();
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [options] { return export_model(*options); };
  });
}

}  // namespace chexnet
