// What the subcommands that run a network share: config files and overrides, the number of ranks,
// and how the world of ranks comes to be.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/app/commands.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"

namespace CLI {
class Validator;
}

namespace chexnet {

// --set key=value, which overrides `what`.
void add_set_option(CLI::App& command, std::vector<std::string>& set, const std::string& what);

// For options that name a place to read tables from or to write to: no s3://.
CLI::Validator in_file_system();
// All that can be found wrong in a config before any rank exists: ConfigError.
void check_run(const Config& config);
// CheckpointError where no file can be made at `path`; empty: none is wanted. For what is written
// after hours of work.
void check_output(const std::string& path);

// What a parent does beyond starting ranks; only runs with a folder are explained and restarted.
struct ParentTask {
  bool dry_run = false;  // print the command and stop
  std::filesystem::path run_folder;
  std::string resume_command;
  int restarts = 0;
  bool stops = false;  // the command looks at stop_requested(); others are ended by a signal
};

// Options of commands that may start ranks: --ranks, --ranks-per-node (--ppn), --gpus, --hostfile,
// --mpi-args, --dry-run.
struct LaunchOptions {
  int ranks = 0, ranks_per_node = 0, gpus = 0;
  std::string hostfile, mpi_args;
  bool dry_run = false;
  void add_to(CLI::App& command);
  void apply_to(LaunchConfig& config) const;
};

// --device of commands without a config file.
void add_device_option(CLI::App& command, std::string& device);

// Commands that look at ranks and links only: LaunchOptions, --device, --network.
struct LinkOptions {
  LaunchOptions launch;
  std::string device = "auto", network = "auto";
  void add_to(CLI::App& command);
  LaunchConfig config() const;
};

// This process as one of a world of ranks, or as the parent that starts them.
struct Launch {
  std::unique_ptr<Communicator> comm;  // set in a rank
  int parent_exit_code = 0;            // of mpirun, in a parent (comm is null)
};

// Where no launcher started this process and more than one rank is wanted, starts mpirun and waits.
// Sets invocation.abort in a rank.
Launch enter_world(const LaunchConfig& config, Invocation& invocation, const ParentTask& task = {});

// The command that goes on with this invocation's run, for a shell.
std::string resume_command(const Invocation& invocation, int ranks);

}  // namespace chexnet
