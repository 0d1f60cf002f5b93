// Files and --set assignments into a checked Config. Any fault is a ConfigError
// naming file and line.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

// Changes to the config by a subcommand's own options (--ranks) and its
// purpose. Nothing changes it later.
using ConfigOverride = std::function<void(Config&)>;

// Later files override earlier ones, assignments ("a.b=c") override files,
// `last` overrides both. Where asked, adds to `variables` the names of the
// environment variables that paths refer to.
Config load_config(const std::vector<std::filesystem::path>& files,
                   const Strings& assignments, Strings* variables = nullptr,
                   const ConfigOverride& last = nullptr);

// The same from YAML text of `origin`, e.g. the config inside a checkpoint.
Config load_config_text(const std::string& origin, const std::string& text,
                        const Strings& assignments,
                        Strings* variables = nullptr,
                        const ConfigOverride& last = nullptr);

// Throws when no table or no images are named.
void check_names_data(const DataConfig& config);
// Throws when the keys of the network's input contradict each other.
void check_input(const DataConfig& data);
// Throws when a required key is empty or two keys contradict each other.
void check_for_training(const Config& config);

// All keys with their values, nested YAML that load_config reads back to an
// equal Config.
std::string config_yaml(const Config& config);

// Without run and launch settings, paths and servers: the keys that a model
// file passed on may hold, and the only ones that we take from somebody else's.
Config without_places(Config config);

// Empty, or why a path that must be in a file system cannot be used: it is in
// an object store.
std::string object_store_problem(const std::string& path);
// The same for a run folder.
std::string run_folder_problem(const std::string& path);
// The same for one that may be s3://bucket/key: it is in another store.
std::string other_store_problem(const std::string& path);

// Empty, or why this is no URL of an object store. A text with an @ is not
// repeated: "https://user:password@host" would end up in logs.
std::string endpoint_problem(const std::string& url);

// One line per option that differs and may not differ in a resumed run; empty =
// may be resumed.
std::vector<std::string> resume_conflicts(const Config& before,
                                          const Config& now);

// Replaces a leading ~ and ${VAR} / ${VAR:-default}; an unset VAR without
// default is a ConfigError.
std::string expanded_path(const std::string& text);

}  // namespace chexnet
