// Checks here ask the file system and the config only. The parent does them and
// each rank again, which sees the same command line.
#include "chexnet/app/run_options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/model/engine/network_spec.hpp"

namespace chexnet {

void check_run(const Config& config) {
  check_for_training(config);
  const int smallest = smallest_input(network_spec(config.model.arch));
  if (config.data.crop < smallest)
    throw ConfigError(
        "[config] data.crop: {} pixels are too few for {}, whose pools leave "
        "nothing of them. Hint: at least {}",
        config.data.crop, choice_name(config.model.arch), smallest);
}

void refuse_to_replace(const std::string& output,
                       const std::vector<std::string>& inputs) {
  if (output.empty()) return;
  // Empty for a pipe's /dev/stdin, which has no path.
  const auto place = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::weakly_canonical(
        std::filesystem::absolute(path, error), error);
  };
  const auto target = place(output);
  for (const auto& input : inputs)
    if (!input.empty() && !target.empty() && place(input) == target)
      throw ConfigError(
          "[output] {} is read by this command and would be replaced, or "
          "written twice. Hint: give the output another name",
          output);
}

void prepare_own_output(const std::string& path, const std::string& head) {
  namespace fs = std::filesystem;
  check_output(path);
  if (!path.empty()) remove_left_partials(fs::absolute(path).parent_path());
  std::error_code error;
  if (path.empty() || !fs::is_regular_file(path, error)) return;
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(
        "[output] {} is there, and {}: it is not replaced. Hint: give the "
        "output another name, or remove that file",
        path, what);
  };
  const fs::path target = fs::weakly_canonical(path);
  const std::string name = target.filename().string();
  if (name.starts_with("predictions_") &&
      fs::exists(target.parent_path() / "config.yaml", error))
    refuse("belongs to the run");
  std::string begin(head.size(), ' ');
  std::ifstream file(target, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (file.gcount() > 0 && begin != head)
    refuse("was not written by this command");
}

void check_output(const std::string& path) {
  if (path.empty()) return;
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const auto fail = [&](const std::string& place, int error) {
    throw CheckpointError(
        "[files] {}: {}. Hint: name a file in a folder that is there and "
        "writable",
        place, std::strerror(error));
  };
  if (std::filesystem::is_directory(path)) fail(path, EISDIR);
  // /dev/stdout and >(command) are meant so.
  std::error_code ignored;
  if (std::filesystem::is_other(path, ignored) && !path.starts_with("/dev/") &&
      !path.starts_with("/proc/"))
    throw CheckpointError(
        "[files] {}: a pipe or device, in whose place a file would stand. "
        "Hint: /dev/stdout or >(command), or the name of a file",
        path);
  if (access(folder.c_str(), F_OK) != 0) fail(path + ": " + folder, errno);
  if (!std::filesystem::is_directory(folder))
    fail(path + ": " + folder, ENOTDIR);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    fail(path + ": " + folder, errno);
}

CLI::Option* add_repeated_option(CLI::App& command, const std::string& name,
                                 std::vector<std::string>& values,
                                 const std::string& what) {
  return command.add_option(name, values, what + "; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
}

void add_set_option(CLI::App& command, std::vector<std::string>& set,
                    const std::string& what) {
  add_repeated_option(command, "--set", set, "key=value, overrides " + what);
}

void refuse_set_twice(const std::vector<std::string>& set,
                      std::string_view option, std::string_view key) {
  for (const auto& assignment : set)
    if (assignment.starts_with(std::string(key) + "="))
      throw ConfigError(
          "[config] --set {}, and {} sets the same key. Hint: leave one out",
          assignment, option);
}

CLI::Option* add_ranks_option(CLI::App& command, int& ranks) {
  return command.add_option("--ranks", ranks, "ranks to start")
      ->check(CLI::Range(1, 1000000));
}

CLI::Option* add_seed_option(CLI::App& command, const std::string& name,
                             uint64_t& seed, const std::string& what) {
  // The parser takes -1 and 2^64 for 2^64 - 1.
  const CLI::Validator in_range(
      [](const std::string& text) {
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, value);
        const bool fits = read.ec == std::errc() && read.ptr == end;
        return fits ? std::string()
                    : text + " is no whole number from 0 to 2^64 - 1";
      },
      "");
  return command.add_option(name, seed, what)->check(in_range);
}

namespace {

// As other programs have it, "-" would be stdin or stdout.
CLI::Validator of_place(std::string (*problem)(const std::string&),
                        const char* kind) {
  const auto problem_of = [problem](const std::string& path) {
    return path == "-" ? "'-' would be a file of that name. Hint: /dev/stdout "
                         "or /dev/stdin; ./- for such a file"
                       : problem(path);
  };
  return {problem_of, "", kind};
}

}  // namespace

CLI::Validator in_file_system() {
  return of_place(object_store_problem, "in a file system");
}

CLI::Validator of_a_run() {
  return of_place(run_folder_problem, "in a file system");
}

CLI::Validator in_known_store() {
  return of_place(other_store_problem, "in a file system or on s3://");
}

void LaunchOptions::add_to(CLI::App& command) {
  CLI::Option* const all =
      command
          .add_option("--ranks", ranks,
                      "ranks to start, all hosts together (launch.ranks)")
          ->check(CLI::Range(1, 1000000));
  CLI::Option* const of_host =
      command
          .add_option("--ranks-per-node", ranks_per_node,
                      "ranks to start on each host (launch.ranks_per_node)")
          ->check(CLI::Range(1, 10000));
  command
      .add_option("--gpus", gpus, "GPUs to use on each host, one rank for each")
      ->check(CLI::Range(1, 10000))
      ->excludes(all)
      ->excludes(of_host);
  command.add_option("--hostfile", hostfile,
                     "hosts to start ranks on (launch.hostfile)");
  command.add_flag(kDryRunOption, dry_run,
                   "print the command that would start the ranks and stop");
}

void LaunchOptions::apply_to(LaunchConfig& config) const {
  // A number for each host overrides the config's number for all hosts.
  if (ranks_per_node > 0 || gpus > 0) config.ranks = 0;
  if (ranks > 0) config.ranks = ranks;
  if (ranks_per_node > 0) config.ranks_per_node = ranks_per_node;
  if (gpus > 0) {
    if (config.device == DeviceKind::kCpu)
      throw ConfigError(
          "[launch] --gpus {}, and launch.device is cpu. Hint: leave one out; "
          "--ranks starts ranks on CPUs",
          gpus);
    config.ranks_per_node = gpus;
    config.device = DeviceKind::kCuda;
  }
  if (!hostfile.empty()) config.hostfile = hostfile;
}

void LaunchOptions::refuse_set_twice(
    const std::vector<std::string>& set) const {
  const auto refuse = [&set](const char* option, const char* key) {
    chexnet::refuse_set_twice(set, option, key);
  };
  if (ranks > 0) refuse("--ranks", "launch.ranks");
  if (ranks_per_node > 0) refuse("--ranks-per-node", "launch.ranks_per_node");
  if (gpus > 0) refuse("--gpus", "launch.ranks_per_node");
  if (!hostfile.empty()) refuse("--hostfile", "launch.hostfile");
}

void add_device_option(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "auto, cpu or cuda")
      ->check(CLI::IsMember(names_or_auto<DeviceKind>()))
      ->capture_default_str();
}

void LinkOptions::add_to(CLI::App& command) {
  launch.add_to(command);
  // A key, launch.mpi_args, where there is a config.
  command.add_option("--mpi-args", mpi_args,
                     "more arguments for mpirun, as one text; quotes keep a "
                     "blank in one of them");
  add_device_option(command, device);
  command.add_option("--network", network, "as launch.network")
      ->check([](const std::string& text) {
        if (NetworkChoice::parse(text)) return std::string();
        return "'" + text + "' is not known. Hint: " + NetworkChoice::known();
      })
      ->capture_default_str();
}

LaunchConfig LinkOptions::config() const {
  LaunchConfig config;
  config.device = find_choice<DeviceKind>(device);
  config.network = *NetworkChoice::parse(network);
  launch.apply_to(config);
  config.mpi_args = words_of(mpi_args);
  return config;
}

double timeout_of_start(const std::vector<std::string>& set) {
  constexpr std::string_view kKey = "launch.timeout_s=";
  double timeout_s = LaunchConfig{}.timeout_s;
  for (const auto& item : set) {
    if (!item.starts_with(kKey)) continue;
    double said = 0;  // load_config() says what is wrong with it
    const char* end = item.data() + item.size();
    if (std::from_chars(item.data() + kKey.size(), end, said).ptr == end &&
        said > 0)
      timeout_s = said;
  }
  return timeout_s;
}

void write_in_time(double timeout_s, const std::filesystem::path& path,
                   std::string_view text, const std::string& option) {
  const StorageWait wait(timeout_s, "writing " + path.string());
  write_atomically(path, text, {}, option);
}

}  // namespace chexnet
