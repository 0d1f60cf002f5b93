// import: the network of a library or of a published reproduction as a model
// file, for predict, evaluate, export and train.
#include "chexnet/train/import.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <ranges>
#include <set>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/image_reader.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string weights, out, findings;
  std::vector<std::string> set;
};

// A file with a name per line, as export's labels.txt, or names with commas.
std::vector<std::string> named_outputs(const std::string& findings) {
  std::error_code error;
  if (fs::exists(findings, error) && !fs::is_directory(findings, error))
    return list_lines(read_text(findings));
  if (findings.find(',') == std::string::npos &&
      findings.find_first_of("/.") != std::string::npos)
    throw AbsentError(
        "[import] --findings {}: no such file. Hint: a file with a name per "
        "line, or names with commas",
        findings);
  std::vector<std::string> names;
  for (const auto& name : std::views::split(findings, ','))
    names.emplace_back(trimmed(std::string_view(name.begin(), name.end())));
  return names;
}

void check_set(const std::vector<std::string>& set) {
  static const std::set<std::string> kKeys = {
      "data.resize", "data.eval_resize", "data.crop",      "data.mean",
      "data.std",    "data.resize_kind", "data.jpeg_scale"};
  for (const auto& assignment : set)
    if (const auto key = assignment.substr(0, assignment.find('='));
        !kKeys.contains(key))
      throw ConfigError(
          "[import] --set {}: says nothing of the input. Hint: one of {}; the "
          "network is seen from the file",
          key, listed({kKeys.begin(), kKeys.end()}));
}

Config config_of(Architecture arch, const std::vector<std::string>& set) {
  Config config =
      load_config({}, set, nullptr, [arch](Config& c) { c.model.arch = arch; });
  check_input(config.data);
  return config;
}

int import_model(const ImportOptions& options) {
  const StorageWait files(timeout_of_start({}), "importing " + options.weights);
  std::error_code error;
  if (fs::exists(fs::symlink_status(options.out, error)))
    throw CheckpointError(
        "[import] {}: is there already, and nothing is replaced. Hint: another "
        "--out",
        options.out);
  check_set(options.set);
  const ImportedNetwork imported = import_network(
      options.weights,
      options.findings.empty() ? std::vector<std::string>{}
                               : named_outputs(options.findings),
      [&](Architecture arch) { return config_of(arch, options.set); },
      options.out);
  const Config& config = imported.config;
  if (!imported.report.read_as.empty())
    log_info("[weights] " + imported.report.read_as);
  if (const auto text = imported.report.left_out_text(); !text.empty())
    log_warning("[weights] " + text);
  log_info(formatted(
      "[import] {} of {} to {}. Its input: {} x {} of images resized to {} "
      "(--set data.… changes it). It has no thresholds, so it gives "
      "probabilities alone",
      choice_name(config.model.arch),
      counted(std::ssize(imported.findings), "finding"), options.out,
      config.data.crop, config.data.crop,
      evaluation_preprocessing(config.data).resize));
  return 0;
}

}  // namespace

void add_import(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "import", "a network of another library as a model of this program");
  auto options = std::make_shared<ImportOptions>();
  command
      ->add_option("weights", options->weights,
                   "a .safetensors file with the names of torchvision, timm, "
                   "torchxrayvision or a CheXNet reproduction")
      ->check(in_file_system())
      ->required();
  command
      ->add_option("--out", options->out,
                   "the model's file, .safetensors, for predict, evaluate, "
                   "export and model.weights")
      ->required()
      ->check(in_file_system());
  command->add_option("--findings", options->findings,
                      "what its outputs are, in their order: names with "
                      "commas, or a file with one per line; - leaves one out");
  add_set_option(*command, options->set,
                 "how its input was prepared (data.resize, data.crop, "
                 "data.mean, data.std, …)");
  command->callback([&invocation, options] {
    invocation.run = [options] { return import_model(*options); };
  });
}

}  // namespace chexnet
