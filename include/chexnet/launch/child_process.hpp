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
ChildOutput output_of(const std::vector<std::string>& command);

}  // namespace chexnet
