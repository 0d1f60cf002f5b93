// The parser keeps the words that it could not place. The first of them is
// compared with what could have stood there: an option of the command that was
// recognized, or a command where none was.
#include "chexnet/app/spelling_hint.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/near_name.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

const CLI::App& innermost_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost_command(*parsed.front());
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command :
       app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// A word of an earlier version, the commands that knew it, and its replacement.
struct RemovedWord {
  std::string_view word, commands, now;
};
constexpr std::string_view kProgram = "chexnet-train";  // no command yet

constexpr auto kRemoved = std::to_array<RemovedWord>({
    {"--slurm", "submit", "--scheduler slurm"},
    {"--pbs", "submit", "--scheduler pbs"},
    {"--local", "submit", "--scheduler local"},
    {"--lsf", "submit", "--scheduler slurm or pbs; scripts/examples/lsf.sh"},
    {"--flux", "submit", "--scheduler slurm or pbs; scripts/examples/flux.sh"},
    {"--kubernetes", "submit",
     "--scheduler slurm or pbs; scripts/examples/kubernetes_job.yaml"},
    {"--ppn", "submit train doctor allreduce", "--ranks-per-node"},
    {"--gpus", "submit", "--gpus-per-node"},
    {"--mpi-args", "train", "--set 'launch.mpi_args=[--mca, btl, tcp]'"},
    {"--format", "evaluate", "--set data.manifest.format=csv"},
    {"--sensitivity", "evaluate", "--set eval.sensitivity=0.9"},
    {"--specificity", "evaluate", "--set eval.specificity=0.9"},
    {"--age-bands", "evaluate", "--by age:18,40,65"},
    {"--heatmap-shifts", "evaluate predict", "always 2"},
    {"--heatmap-threshold", "predict",
     "the model's own thresholds, or --heatmap-findings"},
    {"--list", "predict", "@FILE"},
    {"--listen", "status", "--openmetrics (docs/monitoring.md)"},
    {"--man", "config", "help2man chexnet-train"},
    {"--dicom-sr", "predict", "--dicom DIR"},
    {"--dicom-sc", "predict", "--dicom DIR with --heatmaps DIR"},
    {"--vectors", "export", "always 8"},
    {"--shuffle-seed", "pack", "always 1"},
    {"--engine", "step infer", "--set train.engine=aten"},
    {"--convolutions", "step infer", "--set train.engine=direct"},
    {"--deterministic", "step infer", "--set train.deterministic=true"},
    {"--threads", "step infer", "--set launch.threads=2"},
    {"--gradient-compression", "step",
     "--set launch.gradient_compression=bf16"},
    {"--bucket-mb", "step", "--set launch.bucket_mb=4"},
    {"--bucket-mb", "scaling", "always 4"},
    {"--bench", "scaling", "--rate FILE"},
    {"--images-per-s", "scaling", "--rate NUMBER"},
    {"--gpu", "scaling", "--rate GPU"},
    {"--kind", "loader", "always antialias"},
    {"--plain", "loader", "always with random crop and flip"},
    {"--readers", "loader", "always as data.readers: auto"},
    {"--step-ms", "pipelines", "loading alone"},
    {"patients", kProgram, "inspect RUN --patient ID"},
    {"diagnose", kProgram, "status RUN, or bench run CONFIG"},
    {"plan", kProgram, "bench scaling CLUSTER --rate GPU"},
    {"generate", kProgram, "config --completion"},
});

// "chexnet-train bench run"
std::string full_name(const CLI::App& command) {
  const CLI::App* above = command.get_parent();
  return (above == nullptr ? "" : full_name(*above) + " ") + command.get_name();
}

// "--by age sex": a second value of an option that takes one at a time.
std::string repeat_hint(const CLI::App& command) {
  std::string given;
  for (const auto* option : command.get_options())
    if (option->count() > 0 && option->nonpositional() &&
        option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll &&
        !option->get_allow_extra_args())
      given += (given.empty() ? "" : " or ") + option->get_name();
  return given.empty() ? "" : "write " + given + " again for another value; ";
}

// "--lr", "--train.lr", "--batch-size": of a key, where `command` follows them
// all.
std::string key_hint(const std::string& word, const CLI::App& command) {
  const bool follows_all =
      command.get_name() == "train" || command.get_name() == "submit";
  if (!word.starts_with('-') || !follows_all) return "";
  std::string name = word.substr(word.find_first_not_of('-'));
  std::ranges::replace(name, '-', '_');
  const bool is_key = std::ranges::count(option_keys(), name) > 0;
  const std::string key = is_key ? name : key_of_word(name);
  return key.empty() ? ""
                     : "it is a key of the config: --set " + key + "=VALUE";
}

// Empty for a word that `command` never knew.
std::string written_for(const std::string& word, const CLI::App& command) {
  const std::string name = " " + command.get_name() + " ";
  for (const auto& removed : kRemoved) {
    const std::string commands = " " + std::string(removed.commands) + " ";
    if (removed.word == word && commands.find(name) != std::string::npos)
      return std::string(removed.now);
  }
  return "";
}

}  // namespace

std::string spelling_hint(const CLI::App& app) {
  const auto left = app.remaining(true);
  if (left.empty()) return "";
  const std::string word = left.front().substr(0, left.front().find('='));
  const CLI::App& command = innermost_command(app);
  const std::string instead = written_for(word, command);
  if (!instead.empty())
    return formatted("'{}' is gone. Hint: now {}\n", word, instead);
  const std::string help = full_name(command) + " --help shows what there is";
  auto known =
      word.starts_with('-') ? option_names(command) : command_names(command);
  if (known.empty())
    return formatted("'{}' is one word too many. Hint: {}{}\n", word,
                     repeat_hint(command), help);
  std::erase_if(known, [&](const auto& name) { return !is_near(word, name); });
  const std::string key = key_hint(word, command);
  if (known.empty() && !key.empty())
    return formatted("'{}' is not known. Hint: {}\n", word, key);
  return formatted(
      "'{}' is not known. Hint: {}\n", word,
      known.empty() ? help : "nearest are " + nearest_names(word, known));
}

}  // namespace chexnet
