// A site's requirements for its nodes: a YAML file with a table for each type
// of node, read here, and the comparison with what was measured.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/launch/machine/health.hpp"

namespace chexnet {

// The least that a type of node must reach. Empty ones are not checked.
struct NodeThresholds {
  std::string type;
  std::optional<double> images_per_s;        // of all ranks together
  std::optional<double> allreduce_gb_per_s;  // bus bandwidth
  std::optional<double> read_mb_per_s;
  std::optional<int> gpus;   // that a host shows to a process
  std::string driver;        // "580.65.06"; empty: any
  bool self_test = false;    // must have been made, and passed
  bool names_hosts = false;  // the type has `hosts`
  bool looks_at_nothing() const {
    return !images_per_s && !allreduce_gb_per_s && !read_mb_per_s && !gpus &&
           driver.empty() && !self_test;
  }
};

// The thresholds of `type`, else of the type whose `hosts` fit the name of this
// host, else of the only one where that names no hosts. ConfigError names file
// and line: unknown keys, a rate without its unit, no type that fits, a type
// without thresholds.
NodeThresholds read_acceptance(const std::filesystem::path& path,
                               const std::string& type,
                               const std::string& host);

// The measured figures; the worst host or GPU of all. A figure is empty where
// nothing could be measured.
struct NodeFigures {
  std::optional<double> images_per_s = {}, allreduce_gb_per_s = {},
                        read_mb_per_s = {};
  int gpus = 0;
  std::vector<std::string> drivers = {};  // of each host; "" without one
  bool self_test = false;                 // made, and passed
};

// One row of a figure against its threshold.
struct AcceptanceRow {
  std::string name, unit;
  std::string wanted, found;  // as numbers, or versions; found "": not measured
  bool good = false;
  CheckResult check() const;  // a row of doctor
};
std::vector<AcceptanceRow> compare(const NodeThresholds& wanted,
                                   const NodeFigures& found);

}  // namespace chexnet
