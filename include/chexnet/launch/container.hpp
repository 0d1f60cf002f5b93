// The parts of the host that a job's container shows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

struct Mount {
  std::string source;  // a folder of the host
  std::string target;  // where the container has it
  bool read_only = false;
};

// "SOURCE", "SOURCE:TARGET" or "SOURCE:TARGET:ro". ConfigError for other text,
// a target that is not absolute, or a comma, which separates mounts.
Mount parsed_mount(const std::string& text);

// Files and folders that the config names, but nothing in an object store.
std::vector<std::string> named_paths(const Config& config);

// `given`, and the fewest existing folders that hold `paths` and
// `working_folder`, each at the same path as outside. Of a file its folder; of
// what does not exist yet, the nearest folder above. ConfigError where that is
// `/`, and for a relative source in `given`.
std::vector<Mount> with_mounts_of(const std::vector<std::string>& paths,
                                  const std::filesystem::path& working_folder,
                                  std::vector<Mount> given);

// The path outside of the container for its `path`; unchanged where no mount
// shows it from elsewhere.
std::filesystem::path path_on_host(const std::filesystem::path& path,
                                   const std::vector<Mount>& mounts);

// An image of Apptainer, which is a file, and not one of a registry.
bool is_sif(const std::string& image);

// An image as Pyxis takes it, HOST#NAME, also where it is written as docker
// takes it: HOST/NAME or docker://HOST/NAME. As there, a first part with a dot
// or a colon is a host, and so is localhost.
std::string pyxis_image(std::string image);

}  // namespace chexnet
