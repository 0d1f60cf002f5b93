// YAML without its traps: a table of tables of plain values and lists of plain
// values. Duplicate keys, aliases, deep nesting and files over 256 KiB are
// refused (yaml-cpp takes the first of two equal keys and follows
// self-referencing aliases).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace chexnet {

// A scalar or a list, with its origin ("exp.yaml:3").
struct YamlValue {
  std::string place;
  bool is_list = false;
  std::vector<std::string> items;  // one for a scalar; empty text for null
  size_t number = 0;               // of the keys before it
};

// By dotted key. ConfigError names `origin` and the line.
std::map<std::string, YamlValue> read_strict_yaml(const std::string& origin,
                                                  const std::string& text);
// Of a file; ConfigError also where it is absent or cannot be read.
std::map<std::string, YamlValue> read_strict_yaml_file(
    const std::filesystem::path& path);

}  // namespace chexnet
