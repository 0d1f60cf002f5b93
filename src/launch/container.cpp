#include "chexnet/launch/container.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {
namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [at, rest] = std::ranges::mismatch(folder, path);
  return at == folder.end();
}

// An absolute path without `..` or a slash at its end.
fs::path plain(const fs::path& path) {
  fs::path text = path.lexically_normal();
  return text.has_filename() || text == "/" ? text : text.parent_path();
}

fs::path existing_folder(fs::path path) {
  std::error_code error;
  while (!fs::is_directory(path, error) && path.has_relative_path())
    path = path.parent_path();
  return path;
}

void refuse_relative_source(const Mount& mount) {
  if (mount.source.starts_with('/')) return;
  throw ConfigError(
      "[submit] --mount {}:{}: a relative path, and a job may start elsewhere. "
      "Hint: --mount {}:{}",
      mount.source, mount.target,
      fs::absolute(mount.source).lexically_normal().string(), mount.target);
}

bool is_in_object_store(const std::string& path) {
  return path.find("://") != std::string::npos;
}

// All values of the config that may be paths.
std::vector<std::string> path_values(const Config& config) {
  Config copy = config;  // fields are found in a mutable config
  std::vector<std::string> paths;
  for (const auto& option : config_options()) {
    if (!option.is_path) continue;
    const FieldRef field = option.field(copy);
    if (const auto* const* path = std::get_if<std::string*>(&field))
      paths.push_back(**path);
    if (const auto* const* list = std::get_if<Strings*>(&field))
      paths.insert(paths.end(), (*list)->begin(), (*list)->end());
  }
  return paths;
}

}  // namespace

Mount parsed_mount(const std::string& text) {
  const auto fail = [&] {
    throw ConfigError(
        "[submit] --mount {} is none. Hint: /folder, /folder:/inside or "
        "/folder:/inside:ro",
        text);
  };
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');)
    parts.push_back(part);
  if (parts.empty() || parts.size() > 3 || parts[0].empty() ||
      text.find_first_of(",\n\r") != std::string::npos)
    fail();
  Mount mount{parts[0], parts.size() > 1 ? parts[1] : parts[0], false};
  if (!mount.target.starts_with('/')) fail();
  if (parts.size() == 3) {
    if (parts[2] != "ro" && parts[2] != "rw") fail();
    mount.read_only = parts[2] == "ro";
  }
  return mount;
}

std::vector<std::string> named_paths(const Config& config) {
  std::vector<std::string> paths = path_values(config);
  std::erase_if(paths, [](const std::string& path) {
    return path.empty() || path == "none" || is_in_object_store(path);
  });
  return paths;
}

std::vector<Mount> with_mounts_of(const std::vector<std::string>& paths,
                                  const fs::path& working_folder,
                                  std::vector<Mount> given) {
  std::ranges::for_each(given, refuse_relative_source);
  std::vector<fs::path> folders = {plain(working_folder)};
  for (const auto& path : paths) {
    const fs::path absolute = plain(working_folder / path);
    const bool shown = std::ranges::any_of(given, [&](const Mount& mount) {
      return is_below(absolute, plain(mount.target));
    });
    if (shown) continue;
    folders.push_back(existing_folder(absolute));
    if (folders.back() == "/")
      throw ConfigError(
          "[submit] {}: no folder above it but / exists here, so the container "
          "would not see it. Hint: --mount FOLDER, or --mount FOLDER:INSIDE",
          path);
  }
  // Shorter ones first, so that what is below them is left out.
  std::ranges::sort(folders);
  for (const auto& folder : folders) {
    const bool held = std::ranges::any_of(given, [&](const Mount& mount) {
      return is_below(folder, plain(mount.target));
    });
    if (held) continue;
    given.push_back(parsed_mount(folder.string()));
  }
  return given;
}

fs::path path_on_host(const fs::path& path, const std::vector<Mount>& mounts) {
  for (const auto& mount : mounts)
    if (is_below(plain(path), plain(mount.target)))
      return plain(mount.source /
                   plain(path).lexically_relative(plain(mount.target)));
  return path;
}

bool is_sif(const std::string& image) { return image.ends_with(".sif"); }

std::string pyxis_image(std::string image) {
  constexpr std::string_view kScheme = "docker://";
  if (image.starts_with(kScheme)) image.erase(0, kScheme.size());
  const bool is_file = image.starts_with('/') || image.starts_with('.');
  const size_t slash = image.find('/');
  if (is_file || slash == image.npos || image.find('#') != image.npos)
    return image;
  const std::string first = image.substr(0, slash);
  if (first == "localhost" || first.find_first_of(".:") != first.npos)
    image[slash] = '#';
  return image;
}

}  // namespace chexnet
