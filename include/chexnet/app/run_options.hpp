// Options that subcommands share: overrides of the config, the number of ranks,
// where to compute; and their checks before any rank exists.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/config/config.hpp"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace chexnet {

// An option that may be given several times, with one value each: the next
// word is no second value.
CLI::Option* add_repeated_option(CLI::App& command, const std::string& name,
                                 std::vector<std::string>& values,
                                 const std::string& what);
// --set key=value, which overrides `what`.
void add_set_option(CLI::App& command, std::vector<std::string>& set,
                    const std::string& what);

// ConfigError where `set` assigns the key that `option`, which is given, sets.
void refuse_set_twice(const std::vector<std::string>& set,
                      std::string_view option, std::string_view key);

// --ranks N of commands that start ranks on this host; 0 where it is not given.
CLI::Option* add_ranks_option(CLI::App& command, int& ranks);
// A seed: a whole number of 64 bits.
CLI::Option* add_seed_option(CLI::App& command, const std::string& name,
                             uint64_t& seed, const std::string& what);

// For options that name a path to read from or to write to: no s3://, the same
// for a run folder, or no object store but s3://. None takes "-".
CLI::Validator in_file_system();
CLI::Validator of_a_run();
CLI::Validator in_known_store();
// All that can be found wrong in a config before any rank exists: ConfigError.
void check_run(const Config& config);
// CheckpointError where no file can be made at `path`; empty: none is wanted.
// For files that are written after hours of work.
void check_output(const std::string& path);
// The same; and ConfigError for an existing file that such a command did not
// write (its bytes do not begin with `head`) or that a run keeps
// (predictions_test.csv): it may be irreplaceable. Removes partial files that
// killed commands left beside it.
void prepare_own_output(const std::string& path, const std::string& head);
// ConfigError when the output is one of the inputs; empty names are none.
void refuse_to_replace(const std::string& output,
                       const std::vector<std::string>& inputs);

inline constexpr const char* kDryRunOption = "--dry-run";

// Options of commands that may start ranks: --ranks, --ranks-per-node,
// --gpus, --hostfile, --dry-run.
struct LaunchOptions {
  int ranks = 0, ranks_per_node = 0, gpus = 0;
  std::string hostfile;
  bool dry_run = false;
  void add_to(CLI::App& command);
  void apply_to(LaunchConfig& config) const;
  // ConfigError where --set names the key of one of these that is given.
  void refuse_set_twice(const std::vector<std::string>& set) const;
};

// launch.timeout_s for reads before the config is known: as --set says, else
// the default.
double timeout_of_start(const std::vector<std::string>& set);
// As write_atomically(), within `timeout_s` (StorageWait).
void write_in_time(double timeout_s, const std::filesystem::path& path,
                   std::string_view text, const std::string& option);

// --device of commands without a config file.
void add_device_option(CLI::App& command, std::string& device);

// Commands that look at ranks and links only, without a config: LaunchOptions,
// --mpi-args, --device, --network.
struct LinkOptions {
  LaunchOptions launch;
  std::string mpi_args, device = "auto", network = "auto";
  void add_to(CLI::App& command);
  LaunchConfig config() const;
};

}  // namespace chexnet
