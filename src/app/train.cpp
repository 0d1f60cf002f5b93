// train: everything that can be refused by looking at the command line and the
// config is refused before any rank exists, so that it is reported once and at
// once; checks that need the data follow in train/trainer.cpp on every rank.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/report/timeline.hpp"
#include "chexnet/train/run/job_clock.hpp"
#include "chexnet/train/run/run_folder.hpp"
#include "chexnet/train/trainer.hpp"

namespace chexnet {
namespace {

struct TrainOptions {
  std::vector<std::string> files, set;
  std::string out, resume, timeline, steps;
  LaunchOptions launch;
  bool print_config = false, json = false, verbose = false;
};

Resume resume_of(const std::string& text) {
  if (text.empty()) return Resume::kNo;
  if (text == "auto") return Resume::kAuto;
  if (text == "yes") return Resume::kYes;
  throw ConfigError(
      "[train] --resume {} is not known. Hint: --resume yes, or --resume auto "
      "(starts afresh where there is no checkpoint)",
      text);
}

[[noreturn]] void refuse_nothing() {
  throw ConfigError(
      "[train] no config is named. It says at least which table has the labels "
      "(data.manifest.path), where the images are (data.images) and which "
      "weights to start from (model.weights). Hint: to see a run without data "
      "of your own, in a checkout:\n"
      "  chexnet-train phantom phantom --images 1500 --size 128\n"
      "  chexnet-train train configs/quickstart.yaml\n"
      "ChestX-ray14, in the folder NIH, from random weights:\n"
      "  NIH=FOLDER chexnet-train train configs/chexnet_densenet121.yaml --set "
      "model.weights=none");
}

// Faults of the command line alone.
void check_words(const TrainOptions& options) {
  if (options.files.empty()) refuse_nothing();
  for (const auto& file : options.files)
    if (std::error_code error; file.find('=') != std::string::npos &&
                               !std::filesystem::exists(file, error))
      throw ConfigError(
          "[config] {}: no such file. Hint: --set {}, a --set for each key",
          file, file);
  options.launch.refuse_set_twice(options.set);
  if (!options.out.empty()) refuse_set_twice(options.set, "--out", "run.dir");
}

int run(const TrainOptions& options, Invocation& invocation) {
  check_words(options);
  std::optional<StorageWait> files(std::in_place, timeout_of_start(options.set),
                                   "reading the config and looking at what "
                                   "is to be written");
  const Config config =
      load_config({options.files.begin(), options.files.end()}, options.set,
                  &invocation.variables, [&](Config& c) {
                    if (!options.out.empty()) c.run.dir = options.out;
                    options.launch.apply_to(c.launch);
                  });
  if (options.print_config) {
    std::cout << config_yaml(config) << std::flush;
    check_run(config);  // its faults are reported, too
    return 0;
  }
  // A reader of its output that goes away is no reason to end a training.
  ::signal(SIGPIPE, SIG_IGN);
  // Before any rank exists, so a typo is reported once.
  check_run(config);
  prepare_own_output(options.timeline, kTimelineHead);
  refuse_to_replace(options.timeline, {run_folder_of(config).string()});
  JobClock::configured_s(config.launch);
  std::optional<StepWindow> steps;
  if (!options.steps.empty()) steps = step_window(options.steps);
  const Resume resume = resume_of(options.resume);
  files.reset();
  const ParentTask parent{.dry_run = options.launch.dry_run,
                          .training = &config,
                          .resume = resume,
                          .resume_command = resume_command(invocation, 1),
                          .stops = true};
  RankWorld world = enter_world(config.launch, invocation, parent);
  if (const auto code = world.parent_exit_code()) return *code;
  const bool first = world.comm().rank() == 0;
  TrainRequest request;
  request.resume = resume;
  request.resume_command = resume_command(invocation, world.comm().size());
  request.timeline = {options.timeline, steps};
  request.folder_taken = [&invocation](const std::filesystem::path& folder) {
    invocation.on_failure.note_error = [folder](int code,
                                                const std::string& text) {
      // Its records are those of the run that is there now.
      if (!other_owner(folder).empty()) return;
      write_error_event(folder, code, text);
    };
  };
  const TrainOutcome outcome = train(config, request, world.take_comm());
  if (!first) return static_cast<int>(outcome.code);
  say_outcome(outcome, options.verbose);
  if (options.json) std::cout << outcome_json(outcome) << std::endl;
  return static_cast<int>(outcome.code);
}

}  // namespace

void add_train(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "train",
      "train a network: starts its ranks; under mpirun or srun it is one");
  auto options = std::make_shared<TrainOptions>();
  command->add_option("config", options->files,
                      "YAML files, later ones override earlier ones "
                      "(required)");
  add_set_option(*command, options->set, "the files");
  command->add_option("--out", options->out, "run folder (run.dir)")
      ->check(of_a_run());
  options->launch.add_to(*command);
  command
      ->add_option("--resume", options->resume,
                   "continue from the last complete checkpoint: yes, or auto "
                   "(start anew where there is none)")
      ->expected(0, 1)
      ->default_str("yes");
  auto* timeline =
      command
          ->add_option("--timeline", options->timeline,
                       "write what every rank did and when (Chrome trace, also "
                       "for Perfetto)")
          ->check(in_file_system());
  command
      ->add_option("--steps", options->steps,
                   "with --timeline: of these steps alone, FIRST:LAST")
      ->needs(timeline);
  command->add_flag("--print-config", options->print_config,
                    "print the resolved config and stop");
  command->add_flag("--verbose", options->verbose,
                    "print all tables of the report at the end: operating "
                    "points, calibration and groups of patients, too");
  command
      ->add_flag("--json", options->json,
                 "one JSON object on stdout (docs/json.md)")
      ->excludes("--print-config");
  command->footer(
      "Config keys: `chexnet-train config` lists them (docs/config.md).");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return run(*options, invocation);
    };
  });
}

}  // namespace chexnet
