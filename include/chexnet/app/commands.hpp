// One function per subcommand. Each adds itself to the CLI and sets `run`,
// which returns its exit code. With --json a command prints one object on
// stdout and everything else on stderr.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chexnet/train/run/rank_world.hpp"

namespace CLI {
class App;
}

namespace chexnet {

struct Invocation {
  std::string program;  // its full path
  // Words that start it in a fresh environment.
  std::vector<std::string> command;
  std::vector<std::string> arguments;  // the rest
  // Of the environment, that the config refers to.
  std::vector<std::string> variables;
  std::function<int()> run;  // set by the chosen subcommand
  // Set while there are other ranks, or a run to note it.
  FailureHandlers on_failure;
};

void add_train(CLI::App& app, Invocation& invocation);
void add_evaluate(CLI::App& app, Invocation& invocation);
void add_predict(CLI::App& app, Invocation& invocation);
void add_ensemble(CLI::App& app, Invocation& invocation);
void add_import(CLI::App& app, Invocation& invocation);
void add_export(CLI::App& app, Invocation& invocation);
void add_phantom(CLI::App& app, Invocation& invocation);
void add_pack(CLI::App& app, Invocation& invocation);
void add_inspect(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_find_lr(CLI::App& app, Invocation& invocation);
void add_submit(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_report(CLI::App& app, Invocation& invocation);
void add_status(CLI::App& app, Invocation& invocation);
void add_config(CLI::App& app, Invocation& invocation);

}  // namespace chexnet
