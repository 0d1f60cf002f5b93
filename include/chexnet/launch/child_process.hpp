// Runs a program and takes what it prints. Its stderr and environment are ours.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

struct ChildOutput {
  int exit_code = 0;  // 128 + signal when killed
  std::string output;
};
// DeviceError when it cannot be started. `command[0]` is looked up in PATH.
// Killed after `limit_s` (a batch system whose server is down lets its clients
// hang).
ChildOutput output_of(const std::vector<std::string>& command,
                      double limit_s = 1e9);

// Where `program` is that PATH leads to; empty where there is none.
std::string in_path(const std::string& program);

}  // namespace chexnet
